/* evoengine
name: hashes_thread_each
precision: exact
summary: sixteen rounds of integer multiplications, shifts and exclusive ors, each dependent on the one before
launches:
  - kernel: mix
    grid: ["ceil_div(T, 256)"]
    block: [256]
    args: [x, out, T]
*/
__global__ void __launch_bounds__(256) mix(const int* __restrict__ x, int* __restrict__ out, int T) {
    const int own = blockIdx.x * 256 + threadIdx.x;
    if (own >= T) return;
    unsigned h = x[own];
#pragma unroll
    for (int round = 0; round < 16; ++round) {
        h = (h ^ h >> 16) * 0x85EBCA6Bu;
        h = (h ^ h >> 13) * 0xC2B2AE35u;
        h = h << 5 | h >> 27;
    }
    out[own] = int(h);
}
