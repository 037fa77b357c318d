/* evoengine
name: axpy_few_blocks
precision: fp32
summary: sixteen blocks walk over everything, so that most SMs have nothing to do
launches:
  - kernel: add
    grid: [16]
    block: [512]
    args: [x, y, factor, out, T]
*/
__global__ void __launch_bounds__(512) add(const float* __restrict__ x, const float* __restrict__ y, float factor, float* __restrict__ out, int T) {
    for (int own = blockIdx.x * 512 + threadIdx.x; own < T; own += gridDim.x * 512) out[own] = factor * x[own] + y[own];
}
