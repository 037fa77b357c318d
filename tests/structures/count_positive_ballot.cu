/* evoengine
name: count_positive_ballot
precision: exact
summary: the lanes of a warp vote, and one of them adds the count of four votes to the one counter of all by an atomic
launches:
  - kernel: count
    grid: ["ceil_div(T, 1024)"]
    block: [256]
    args: [x, out, T]
*/
__global__ void __launch_bounds__(256) count(const float* __restrict__ x, int* __restrict__ out, int T) {
    int found = 0;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        const int at = blockIdx.x * 1024 + i * 256 + threadIdx.x;
        found += __popc(__ballot_sync(~0u, at < T && x[at] > 0.0f));
    }
    if (threadIdx.x % 32 == 0 && found) atomicAdd(out, found);
}
