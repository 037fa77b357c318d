/* evoengine
name: moments_merged_slices
precision: fp32
summary: four blocks share 32 columns, a slice of the rows each; threads run Welford's recurrence, eight of them are merged in shared memory, and a second launch merges the slices
scratch:
  counts: {dtype: float32, shape: [4, C]}
  means: {dtype: float32, shape: [4, C]}
  squares: {dtype: float32, shape: [4, C]}
launches:
  - kernel: measure_slices
    grid: ["ceil_div(C, 32)", 4]
    block: [32, 8]
    args: [x, counts, means, squares, N, C]
  - kernel: merge_slices
    grid: ["ceil_div(C, 64)"]
    block: [64]
    args: [counts, means, squares, mean, variance, N, C]
*/
constexpr int COLUMNS = 32, TEAMS = 8, SLICES = 4;

// So many numbers, their mean, and the sum of the squared deviations from it.
struct Moments {
    float count, mean, squares;
};

__device__ __forceinline__ Moments merged(Moments one, Moments other) {
    const float count = one.count + other.count, delta = other.mean - one.mean;
    if (other.count == 0.0f) return one;
    return {count, one.mean + delta * other.count / count,
            one.squares + other.squares + delta * delta * one.count * other.count / count};
}

__global__ void __launch_bounds__(COLUMNS * TEAMS)
measure_slices(const float* __restrict__ x, float* __restrict__ counts, float* __restrict__ means,
               float* __restrict__ squares, int N, int C) {
    __shared__ Moments teams[TEAMS][COLUMNS];
    const int column = blockIdx.x * COLUMNS + threadIdx.x, rows = (N + SLICES - 1) / SLICES;
    const int first = blockIdx.y * rows, last = min(N, first + rows);
    Moments own = {0.0f, 0.0f, 0.0f};
    if (column < C) {
        for (int row = first + threadIdx.y; row < last; row += TEAMS) {
            const float value = x[size_t(row) * C + column], delta = value - own.mean;
            own.count += 1.0f;
            own.mean += delta / own.count;
            own.squares += delta * (value - own.mean);
        }
    }
    teams[threadIdx.y][threadIdx.x] = own;
    for (int step = TEAMS / 2; step > 0; step /= 2) {
        __syncthreads();
        if (threadIdx.y < step)
            teams[threadIdx.y][threadIdx.x] = merged(teams[threadIdx.y][threadIdx.x], teams[threadIdx.y + step][threadIdx.x]);
    }
    if (threadIdx.y > 0 || column >= C) return;
    const Moments all = teams[0][threadIdx.x];
    const int to = blockIdx.y * C + column;
    counts[to] = all.count;
    means[to] = all.mean;
    squares[to] = all.squares;
}

__global__ void __launch_bounds__(64)
merge_slices(const float* __restrict__ counts, const float* __restrict__ means, const float* __restrict__ squares,
             float* __restrict__ mean, float* __restrict__ variance, int N, int C) {
    const int column = blockIdx.x * 64 + threadIdx.x;
    if (column >= C) return;
    Moments all = {0.0f, 0.0f, 0.0f};
#pragma unroll
    for (int slice = 0; slice < SLICES; ++slice) {
        const int from = slice * C + column;
        all = merged(all, {counts[from], means[from], squares[from]});
    }
    mean[column] = all.mean;
    variance[column] = all.squares / (N - 1);
}
