/* evoengine
name: heat_steps_in_shared
precision: fp32
summary: four steps on a tile and its surroundings in shared memory, from one array to another, so that global memory is read once
launches:
  - kernel: flow
    grid: ["ceil_div(W, 56)", "ceil_div(H, 24)"]
    block: [64, 8]
    args: [x, rate, out, H, W]
*/
constexpr int SIDE = 4, TALL = 32, WIDE = 64;   // the tile with four rows and columns around it

__global__ void __launch_bounds__(512) flow(const float* __restrict__ x, float rate, float* __restrict__ out, int H, int W) {
    __shared__ float tiles[2][TALL][WIDE];
    const int c = threadIdx.x, row0 = blockIdx.y * (TALL - 2 * SIDE) - SIDE, column = blockIdx.x * (WIDE - 2 * SIDE) - SIDE + c;
    for (int r = threadIdx.y; r < TALL; r += 8) {
        const int row = row0 + r;
        tiles[0][r][c] = row >= 0 && row < H && column >= 0 && column < W ? x[size_t(row) * W + column] : 0.0f;
    }
    __syncthreads();
#pragma unroll
    for (int step = 0; step < 4; ++step) {
        const auto& from = tiles[step % 2];
        for (int r = threadIdx.y; r < TALL; r += 8) {
            const int row = row0 + r;
            const bool inside = row >= 0 && row < H && column >= 0 && column < W;
            float v = 0.0f;
            if (inside && r > step && r < TALL - 1 - step && c > step && c < WIDE - 1 - step)
                v = from[r][c] + rate * (from[r - 1][c] + from[r + 1][c] + from[r][c - 1] + from[r][c + 1] - 4.0f * from[r][c]);
            tiles[(step + 1) % 2][r][c] = v;
        }
        __syncthreads();
    }
    for (int r = SIDE + threadIdx.y; r < TALL - SIDE; r += 8) {
        const int row = row0 + r;
        if (row < H && column < W && c >= SIDE && c < WIDE - SIDE) out[size_t(row) * W + column] = tiles[0][r][c];
    }
}
