/* evoengine
name: heat_four_launches
precision: fp32
summary: a launch a step, a thread a point; two buffers in turn
scratch:
  first: {dtype: float32, shape: [H, W]}
  second: {dtype: float32, shape: [H, W]}
launches:
  - kernel: step
    grid: ["ceil_div(W, 64)", "ceil_div(H, 4)"]
    block: [64, 4]
    args: [x, first, H, W, rate]
  - kernel: step
    grid: ["ceil_div(W, 64)", "ceil_div(H, 4)"]
    block: [64, 4]
    args: [first, second, H, W, rate]
  - kernel: step
    grid: ["ceil_div(W, 64)", "ceil_div(H, 4)"]
    block: [64, 4]
    args: [second, first, H, W, rate]
  - kernel: step
    grid: ["ceil_div(W, 64)", "ceil_div(H, 4)"]
    block: [64, 4]
    args: [first, out, H, W, rate]
*/
__global__ void __launch_bounds__(256) step(const float* __restrict__ x, float* __restrict__ out, int H, int W, float rate) {
    const int column = blockIdx.x * 64 + threadIdx.x, row = blockIdx.y * 4 + threadIdx.y;
    if (column >= W || row >= H) return;
    const float* at = x + size_t(row) * W + column;
    const float own = *at;
    const float up = row ? at[-W] : 0.0f, down = row + 1 < H ? at[W] : 0.0f;
    const float left = column ? at[-1] : 0.0f, right = column + 1 < W ? at[1] : 0.0f;
    out[size_t(row) * W + column] = own + rate * (up + down + left + right - 4.0f * own);
}
