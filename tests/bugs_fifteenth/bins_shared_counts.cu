/* evoengine
name: bins_shared_counts
precision: fp32
summary: a block has 128 rows of eight columns, which it counts and adds up in shared memory by atomics before it adds its bins to those in memory
launches:
  - kernel: fill_bins<BINS>
    grid: ["ceil_div(C, 8)", "ceil_div(N, 128)"]
    block: [8, 32]
    args: [x, counts, sums, N, C, low, high]
*/
constexpr int COLUMNS = 8, TEAMS = 32, THREADS = COLUMNS * TEAMS, ROWS = 128;

template <int BINS>
__global__ void __launch_bounds__(THREADS)
fill_bins(const float* __restrict__ x, int* __restrict__ counts, float* __restrict__ sums, int N, int C, float low,
          float high) {
    __shared__ int block_counts[COLUMNS * BINS];
    __shared__ float block_sums[COLUMNS * BINS];
    const int thread = threadIdx.y * COLUMNS + threadIdx.x, column = blockIdx.x * COLUMNS + threadIdx.x;
    for (int i = thread; i < COLUMNS * BINS; i += THREADS) {
        block_counts[i] = 0;
        block_sums[i] = 0.0f;
    }
    __syncthreads();

    const float bins_per_unit = BINS / (high - low);
    const int end = min(N, int(blockIdx.y + 1) * ROWS);
    if (column < C) {
        for (int row = blockIdx.y * ROWS + threadIdx.y; row < end; row += TEAMS) {
            const float value = x[size_t(row) * C + column];
            const int place = __float2int_rd((value - low) * bins_per_unit);
            const int bin = threadIdx.x * BINS + max(0, min(place, BINS - 1));   // the outer bins take what is outside
            atomicAdd(&block_counts[bin], 1);
            atomicAdd(&block_sums[bin], value);
        }
    }
    __syncthreads();

    const int first = blockIdx.x * COLUMNS * BINS;
    for (int i = thread; i < COLUMNS * BINS; i += THREADS) {
        if (block_counts[i] > 0) {   // in no bin of a column beyond the last
            atomicAdd(&counts[first + i], block_counts[i]);
            atomicAdd(&sums[first + i], block_sums[i]);
        }
    }
}
