/* evoengine
name: image_corners_once
precision: fp32
summary: a thread has a place, for which it finds four corners and their weights once, and all planes
launches:
  - kernel: move
    grid: ["ceil_div(W, 32)", "ceil_div(H, 4)"]
    block: [32, 4]
    args: [image, flow, out, P, H, W]
*/
__global__ void __launch_bounds__(128)
move(const float* __restrict__ image, const float* __restrict__ flow, float* __restrict__ out, int P, int H, int W) {
    const int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 4 + threadIdx.y;
    if (x >= W || y >= H) return;
    const int at = y * W + x;
    const float across = flow[at], down = flow[H * W + at];
    const float whole_x = floorf(across), whole_y = floorf(down);
    const float part_x = across - whole_x, part_y = down - whole_y;

    float weights[4];
    weights[0] = (1.0f - part_x) * (1.0f - part_y);
    weights[1] = part_x * (1.0f - part_y);
    weights[2] = (1.0f - part_x) * part_y;
    weights[3] = part_x * part_y;
    int corners[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        const int column = x + int(whole_x) + i % 2, row = y + int(whole_y) + i / 2;
        const bool inside = column >= 0 && column < W && row >= 0 && row < H;
        corners[i] = inside ? row * W + column : -1;
    }
    for (int p = 0; p < P; ++p) {
        const float* plane = image + size_t(p) * H * W;
        float sum = 0.0f;
#pragma unroll
        for (int i = 0; i < 4; ++i)
            if (corners[i] != -1) sum = fmaf(weights[i], plane[corners[i]], sum);
        out[size_t(p) * H * W + at] = sum;
    }
}
