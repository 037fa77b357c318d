/* evoengine
name: axpy_tiny_blocks
precision: fp32
summary: blocks of a single warp, a number a thread, and very many of them
launches:
  - kernel: add
    grid: ["ceil_div(T, 32)"]
    block: [32]
    args: [x, y, factor, out, T]
*/
__global__ void __launch_bounds__(32) add(const float* __restrict__ x, const float* __restrict__ y, float factor, float* __restrict__ out, int T) {
    const int own = blockIdx.x * 32 + threadIdx.x;
    if (own < T) out[own] = factor * x[own] + y[own];
}
