/* evoengine
name: pool_rows_then_columns
precision: fp32
summary: a block has 16 x 8 windows, whose elements lie in shared memory; the largest of each row of a window first, then the largest of its rows
launches:
  - kernel: pool<SIZE>
    grid: ["ceil_div((W + 2 - SIZE) // 2 + 1, 16)", "ceil_div((H + 2 - SIZE) // 2 + 1, 8)", P]
    block: [16, 8]
    args: [x, out, places, H, W]
*/
constexpr int ACROSS = 16, DOWN = 8, THREADS = ACROSS * DOWN;

template <int SIZE>
__global__ void __launch_bounds__(THREADS)
pool(const float* __restrict__ x, float* __restrict__ out, int* __restrict__ places, int H, int W) {
    constexpr int ROWS = (DOWN - 1) * 2 + SIZE, COLUMNS = (ACROSS - 1) * 2 + SIZE;
    __shared__ float tile[ROWS][COLUMNS], best[ROWS][ACROSS];
    __shared__ int where[ROWS][ACROSS];
    const int thread = threadIdx.y * ACROSS + threadIdx.x;
    const int top = blockIdx.y * DOWN * 2 - 1, left = blockIdx.x * ACROSS * 2 - 1;
    const float* plane = x + size_t(blockIdx.z) * H * W;

    for (int i = thread; i < ROWS * COLUMNS; i += THREADS) {
        const int r = i / COLUMNS, c = i % COLUMNS, y = top + r, z = left + c;
        tile[r][c] = y >= 0 && y < H && z >= 0 && z < W ? plane[y * W + z] : -INFINITY;
    }
    __syncthreads();
    for (int i = thread; i < ROWS * ACROSS; i += THREADS) {
        const int r = i / ACROSS, window = i % ACROSS;
        int at = window * 2;
#pragma unroll
        for (int c = 1; c < SIZE; ++c)
            if (tile[r][window * 2 + c] > tile[r][at]) at = window * 2 + c;
        best[r][window] = tile[r][at];
        where[r][window] = left + at;
    }
    __syncthreads();

    const int high = (H + 2 - SIZE) / 2 + 1, wide = (W + 2 - SIZE) / 2 + 1;
    const int y = blockIdx.y * DOWN + threadIdx.y, z = blockIdx.x * ACROSS + threadIdx.x;
    if (y >= high || z >= wide) return;
    int row = threadIdx.y * 2;
#pragma unroll
    for (int r = 1; r < SIZE; ++r)
        if (best[threadIdx.y * 2 + r][threadIdx.x] > best[row][threadIdx.x]) row = threadIdx.y * 2 + r;
    const size_t to = (size_t(blockIdx.z) * high + y) * wide + z;
    out[to] = best[row][threadIdx.x];
    places[to] = (top + row) * W + where[row][threadIdx.x];
}
