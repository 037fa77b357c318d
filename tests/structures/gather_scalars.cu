/* evoengine
name: gather_scalars
precision: fp32
summary: a thread gathers four numbers of a table, at random places
launches:
  - kernel: gather
    grid: ["ceil_div(T, 1024)"]
    block: [256]
    args: [table, index, out, T]
*/
__global__ void __launch_bounds__(256)
gather(const float* __restrict__ table, const int* __restrict__ index, float* __restrict__ out, int T) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        const int at = blockIdx.x * 1024 + i * 256 + threadIdx.x;
        if (at < T) out[at] = table[index[at]];
    }
}
