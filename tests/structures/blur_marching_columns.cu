/* evoengine
name: blur_marching_columns
precision: fp32
summary: a thread a column of 32 rows; the last five rows, weighted along the row, stay in registers
launches:
  - kernel: blur
    grid: ["ceil_div(W, 128)", "ceil_div(H, 32)"]
    block: [128]
    args: [x, weights, out, H, W]
*/
__global__ void __launch_bounds__(128) blur(const float* __restrict__ x, const float* __restrict__ weights, float* __restrict__ out, int H, int W) {
    const int column = blockIdx.x * 128 + threadIdx.x, first = blockIdx.y * 32;
    if (column >= W) return;
    float w[5], rows[5] = {};
#pragma unroll
    for (int i = 0; i < 5; ++i) w[i] = weights[i];
    auto weighted = [&](int y) {
        float sum = 0.0f;
        if (y >= 0 && y < H) {
            const float* row = x + size_t(y) * W;
#pragma unroll
            for (int i = -2; i <= 2; ++i)
                if (column + i >= 0 && column + i < W) sum += w[i + 2] * row[column + i];
        }
        return sum;
    };
#pragma unroll
    for (int i = 0; i < 4; ++i) rows[i + 1] = weighted(first - 2 + i);
#pragma unroll 4
    for (int i = 0; i < 32; ++i) {
#pragma unroll
        for (int j = 0; j < 4; ++j) rows[j] = rows[j + 1];
        rows[4] = weighted(first + i + 2);
        if (first + i < H)
            out[size_t(first + i) * W + column] = w[0] * rows[0] + w[1] * rows[1] + w[2] * rows[2] + w[3] * rows[3] + w[4] * rows[4];
    }
}
