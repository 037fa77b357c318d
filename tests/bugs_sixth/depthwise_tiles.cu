/* evoengine
name: depthwise_tiles
precision: fp32
summary: a block has 8x16 results of a plane, their pixels lie in shared memory
launches:
  - kernel: convolve
    grid: ["ceil_div((W + 1) // 2, 16)", "ceil_div((H + 1) // 2, 8)", "N * C"]
    block: [16, 8]
    args: [x, weight, bias, out, C, H, W]
*/
constexpr int ROWS = 17, COLUMNS = 33;

__global__ void convolve(const float* x, const float* weight, const float* bias, float* out, int C, int H, int W) {
    __shared__ float tile[ROWS][COLUMNS];
    const int OH = (H + 1) / 2, OW = (W + 1) / 2;
    const int plane = blockIdx.z, channel = plane % C;
    const int top = blockIdx.y * 16 - 1, left = blockIdx.x * 32 - 1;
    for (int i = threadIdx.y * 16 + threadIdx.x; i < ROWS * COLUMNS; i += 128) {
        const int row = top + i / COLUMNS, column = left + i % COLUMNS;
        const bool inside = row >= 0 && row < H && column >= 0 && column < W;
        tile[i / COLUMNS][i % COLUMNS] = inside ? x[(size_t(plane) * H + row) * W + column] : 0.0f;
    }
    __syncthreads();
    const int oy = blockIdx.y * 8 + threadIdx.y, ox = blockIdx.x * 16 + threadIdx.x;
    if (oy >= OH || ox >= OW) return;
    float sum = bias[channel];
    for (int r = 0; r < 3; ++r)
        for (int c = 0; c < 3; ++c)
            sum += weight[channel * 9 + r * 3 + c] * tile[threadIdx.y * 2 + r][threadIdx.x * 2 + c];
    out[(size_t(plane) * OH + oy) * OW + ox] = sum;
}
