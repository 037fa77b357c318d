/* evoengine
name: enlarge_grid_stride
precision: fp32
summary: a loop over all outputs with the grid's stride, each of which divides out its place and weighs four points
launches:
  - kernel: enlarge
    grid: ["min(8 * SM_COUNT, ceil_div(4 * P * H * W, 256))"]
    block: [256]
    args: [x, out, 4 * P * H * W, H, W]
*/
__global__ void __launch_bounds__(256) enlarge(const float* __restrict__ x, float* __restrict__ out, int count, int H, int W) {
    for (int own = blockIdx.x * 256 + threadIdx.x; own < count; own += gridDim.x * 256) {
        const int column = own % (2 * W), row = own / (2 * W) % (2 * H), plane = own / (4 * H * W);
        const float y = fmaxf((row + 0.5f) * 0.5f - 0.5f, 0.0f), z = fmaxf((column + 0.5f) * 0.5f - 0.5f, 0.0f);
        const int y0 = int(y), z0 = int(z), y1 = min(y0 + 1, H - 1), z1 = min(z0 + 1, W - 1);
        const float down = y - y0, right = z - z0;
        const float* from = x + size_t(plane) * H * W;
        const float upper = from[y0 * W + z0] * (1.0f - right) + from[y0 * W + z1] * right;
        const float lower = from[y1 * W + z0] * (1.0f - right) + from[y1 * W + z1] * right;
        out[own] = upper * (1.0f - down) + lower * down;
    }
}
