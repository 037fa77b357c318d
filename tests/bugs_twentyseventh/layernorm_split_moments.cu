/* evoengine
name: layernorm_split_moments
precision: fp32
summary: moments of parts of rows by Welford's method, merged by a second launch that keeps weights in registers
tunables:
  MOMENT_THREADS: [128, 64, 256]
  SPLITS: [4, 2, 8]           # parts of a row
  NORM_THREADS: [128, 256]
  ROWS: [4, 8, 2]             # rows that share one load of weight and bias
let:
  V: 4 if C % 4 == 0 else 1
  PART: round_up(ceil_div(C, SPLITS), 4)
require:
  - ROWS * WARP_SIZE <= 2 * NORM_THREADS
scratch:
  parts: {dtype: float32, shape: [N, SPLITS, 3]}
launches:
  - kernel: partMoments<V>
    grid: [SPLITS, N]
    block: [MOMENT_THREADS]
    args: [x, parts, C, PART]
  - kernel: normalise<V>
    grid: ["ceil_div(C, V * NORM_THREADS)", "ceil_div(N, ROWS)"]
    block: [NORM_THREADS]
    args: [x, weight, bias, parts, out, N, C, eps]
*/

// out = (x - mean) / sqrt(variance + eps) * weight + bias over the rows of x [N, C].
// The means of both launches are relative to the first element of the row: where a row lies far from
// zero, its deviations from that element are small, and their mean keeps all of its digits.

template <int V> struct alignas(4 * V) Vec { float at[V]; };

struct Moments {
    float n, mean, m2;

    __device__ __forceinline__ void push(float d) {
        n += 1.0f;
        const float delta = d - mean;
        mean += delta / n;
        m2 += delta * (d - mean);
    }

    // Chan's rule for two disjoint sets, either of which may be empty.
    __device__ __forceinline__ void merge(float otherN, float otherMean, float otherM2) {
        const float total = n + otherN;
        if (total == 0.0f) return;
        const float delta = otherMean - mean, share = otherN / total;
        mean += delta * share;
        m2 += otherM2 + delta * delta * n * share;
        n = total;
    }

    template <int Width> __device__ __forceinline__ void mergeLanes() {
#pragma unroll
        for (int step = Width / 2; step > 0; step /= 2) {
            const float otherN = __shfl_down_sync(0xffffffffu, n, step, Width);
            const float otherMean = __shfl_down_sync(0xffffffffu, mean, step, Width);
            const float otherM2 = __shfl_down_sync(0xffffffffu, m2, step, Width);
            merge(otherN, otherMean, otherM2);
        }
    }
};

template <int V>
__global__ void __launch_bounds__(MOMENT_THREADS)
partMoments(const float* __restrict__ x, float* __restrict__ parts, int C, int PART) {
    constexpr int kWarps = MOMENT_THREADS / 32;
    __shared__ Moments ofWarp[kWarps];
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    const long long row = blockIdx.y;
    const float* source = x + row * C;
    const float origin = source[0];
    const int begin = blockIdx.x * PART, end = min(begin + PART, C);

    Moments mine = {0.0f, 0.0f, 0.0f};
    for (int c = begin + V * threadIdx.x; c < end; c += V * MOMENT_THREADS) {
        const Vec<V> v = *reinterpret_cast<const Vec<V>*>(source + c);
#pragma unroll
        for (int j = 0; j < V; ++j) mine.push(v.at[j] - origin);
    }
    mine.mergeLanes<32>();
    if (lane == 0) ofWarp[warp] = mine;
    __syncthreads();

    if (threadIdx.x == 0) {
        for (int w = 1; w < kWarps; ++w) mine.merge(ofWarp[w].n, ofWarp[w].mean, ofWarp[w].m2);
        float* target = parts + (row * SPLITS + blockIdx.x) * 3;
        target[0] = mine.n, target[1] = mine.mean, target[2] = mine.m2;
    }
}

template <int V>
__global__ void __launch_bounds__(NORM_THREADS)
normalise(const float* __restrict__ x, const float* __restrict__ weight, const float* __restrict__ bias,
          const float* __restrict__ parts, float* __restrict__ out, int N, int C, float eps) {
    __shared__ float2 statOf[ROWS];   // mean relative to the row's first element, 1 / deviation
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    const long long firstRow = static_cast<long long>(blockIdx.y) * ROWS;
    const int rows = static_cast<int>(min(static_cast<long long>(ROWS), N - firstRow));

    for (int r = warp; r < rows; r += NORM_THREADS / 32) {
        Moments whole = {0.0f, 0.0f, 0.0f};
        if (lane < SPLITS) {
            const float* part = parts + ((firstRow + r) * SPLITS + lane) * 3;
            whole.n = part[0], whole.mean = part[1], whole.m2 = part[2];
        }
        whole.mergeLanes<SPLITS>();
        if (lane == 0) statOf[r] = make_float2(whole.mean, 1.0f / sqrtf(whole.m2 / C + eps));
    }
    __syncthreads();

    const int c = V * (blockIdx.x * NORM_THREADS + threadIdx.x);
    if (c >= C) return;
    const Vec<V> w = *reinterpret_cast<const Vec<V>*>(weight + c);
    const Vec<V> b = *reinterpret_cast<const Vec<V>*>(bias + c);
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
        if (r >= rows) break;
        const float* source = x + (firstRow + r) * C;
        const float origin = source[0];
        const float2 stat = statOf[r];
        const Vec<V> v = *reinterpret_cast<const Vec<V>*>(source + c);
        Vec<V> y;
#pragma unroll
        for (int j = 0; j < V; ++j) y.at[j] = ((v.at[j] - origin) - stat.x) * stat.y * w.at[j] + b.at[j];
        *reinterpret_cast<Vec<V>*>(out + (firstRow + r) * C + c) = y;
    }
}
