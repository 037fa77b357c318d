/* evoengine
name: pool_separable_tiles
precision: fp32
summary: a block has 8 x 16 results of a plane; windows are added along rows and then along columns in shared memory
let:
  HO: (H + 2 * PAD - KERNEL) // STRIDE + 1
  WO: (W + 2 * PAD - KERNEL) // STRIDE + 1
launches:
  - kernel: pool<KERNEL, STRIDE, PAD, count_pad>
    grid: ["ceil_div(WO, 16)", "ceil_div(HO, 8)", "N * C"]
    block: [128]
    args: [x, out, H, W, HO, WO]
*/
constexpr int TILE_Y = 8, TILE_X = 16, THREADS = 128;

template <int KERNEL, int STRIDE, int PAD, bool COUNT_PAD>
__global__ void __launch_bounds__(THREADS)
pool(const float* __restrict__ x, float* __restrict__ out, int H, int W, int HO, int WO) {
    constexpr int IN_Y = (TILE_Y - 1) * STRIDE + KERNEL, IN_X = (TILE_X - 1) * STRIDE + KERNEL;
    __shared__ float pixels[IN_Y][IN_X];
    __shared__ float across[IN_Y][TILE_X];   // sums along the rows
    const int first_x = blockIdx.x * TILE_X, first_y = blockIdx.y * TILE_Y;
    const int left = first_x * STRIDE - PAD, above = first_y * STRIDE - PAD;
    const float* plane = x + size_t(blockIdx.z) * H * W;
    for (int i = threadIdx.x; i < IN_Y * IN_X; i += THREADS) {
        const int py = above + i / IN_X, px = left + i % IN_X;
        const bool inside = py >= 0 && py < H && px >= 0 && px < W;
        pixels[i / IN_X][i % IN_X] = inside ? plane[size_t(py) * W + px] : 0.0f;
    }
    __syncthreads();
    for (int i = threadIdx.x; i < IN_Y * TILE_X; i += THREADS) {
        float sum = 0.0f;
        for (int e = 0; e < KERNEL; ++e) sum += pixels[i / TILE_X][i % TILE_X * STRIDE + e];
        across[i / TILE_X][i % TILE_X] = sum;
    }
    __syncthreads();
    const int y = threadIdx.x / TILE_X, ox = first_x + threadIdx.x % TILE_X, oy = first_y + y;
    if (ox >= WO || oy >= HO) return;
    float sum = 0.0f;
    for (int e = 0; e < KERNEL; ++e) sum += across[y * STRIDE + e][threadIdx.x % TILE_X];
    int count = KERNEL * KERNEL;
    if (!COUNT_PAD) {
        const int begin_y = oy * STRIDE - PAD, begin_x = ox * STRIDE - PAD;
        const int rows = min(begin_y + KERNEL, H) - max(begin_y, 0);
        const int columns = min(begin_x + KERNEL, W) - max(begin_x, 0);
        count = rows * columns;
    }
    out[(size_t(blockIdx.z) * HO + oy) * WO + ox] = sum / count;
}
