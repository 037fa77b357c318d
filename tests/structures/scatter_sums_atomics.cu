/* evoengine
name: scatter_sums_atomics
precision: fp32
summary: a thread adds four numbers to places all over a list in global memory, by atomics of floats
launches:
  - kernel: scatter
    grid: ["ceil_div(T, 1024)"]
    block: [256]
    args: [x, index, out, T]
*/
__global__ void __launch_bounds__(256)
scatter(const float* __restrict__ x, const int* __restrict__ index, float* __restrict__ out, int T) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        const int at = blockIdx.x * 1024 + i * 256 + threadIdx.x;
        if (at < T) atomicAdd(out + index[at], x[at]);
    }
}
