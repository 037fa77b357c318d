/* evoengine
name: mosaic_stats_then_panels
precision: fp32
summary: moments of every row by one block, then panels of columns whose gains stay in registers
tunables:
  ROWS: [4, 8, 16]
  COLS: [1, 2, 4]
let:
  V: 4 if C % 4 == 0 else 1
scratch:
  centre: {dtype: float32, shape: [N]}
  spread: {dtype: float32, shape: [N]}
launches:
  - kernel: row_moments<V>
    grid: [N]
    block: [128]
    args: [x, centre, spread, C, eps]
  - kernel: normalise_panel<COLS>
    grid: ["ceil_div(C, 128 * COLS)", "ceil_div(N, ROWS)"]
    block: [128]
    args: [x, weight, bias, centre, spread, out, N, C]
*/

// Layer normalisation as two passes over memory.
//   1. row_moments: Chan's pairwise merge of (count, mean, sum of squared deviations), on values from which
//      the row's first element was subtracted, so that a large common offset costs no digits.
//   2. normalise_panel: a thread owns COLS columns, loads their weight and bias once and walks down ROWS rows.

constexpr int BLOCK = 128;
constexpr int LANES = 32;
constexpr int N_WARPS = BLOCK / LANES;

struct Moments {
    float n;      // how many values
    float mu;     // their mean
    float m2;     // sum of squared distances from it

    __device__ __forceinline__ void absorb(const Moments& o) {
        const float total = n + o.n;
        if (total == 0.0f) return;
        const float delta = o.mu - mu;
        const float share = o.n / total;
        mu += delta * share;
        m2 += o.m2 + delta * delta * n * share;
        n = total;
    }
};

__device__ __forceinline__ Moments from_lane(const Moments& a, int distance) {
    Moments o;
    o.n = __shfl_down_sync(0xffffffffu, a.n, distance);
    o.mu = __shfl_down_sync(0xffffffffu, a.mu, distance);
    o.m2 = __shfl_down_sync(0xffffffffu, a.m2, distance);
    return o;
}

template <int V> struct alignas(V * sizeof(float)) Vec { float e[V]; };

// The moments of a few values held in registers, in two passes.
template <int V>
__device__ __forceinline__ Moments of_vector(const Vec<V>& v, float pivot) {
    float d[V], sum = 0.0f;
#pragma unroll
    for (int k = 0; k < V; ++k) {
        d[k] = v.e[k] - pivot;
        sum += d[k];
    }
    Moments r{float(V), sum / V, 0.0f};
#pragma unroll
    for (int k = 0; k < V; ++k) r.m2 += (d[k] - r.mu) * (d[k] - r.mu);
    return r;
}

template <int V>
__global__ void __launch_bounds__(BLOCK)
row_moments(const float* __restrict__ x, float* __restrict__ centre, float* __restrict__ spread, int C, float eps) {
    __shared__ Moments by_warp[N_WARPS];

    const size_t row = blockIdx.x;
    const float pivot = x[row * C];
    const Vec<V>* vectors = reinterpret_cast<const Vec<V>*>(x + row * C);
    const int lane = threadIdx.x % LANES, warp = threadIdx.x / LANES;

    Moments mine{0.0f, 0.0f, 0.0f};
    for (int i = threadIdx.x; i < C / V; i += BLOCK) mine.absorb(of_vector<V>(vectors[i], pivot));

#pragma unroll
    for (int distance = LANES / 2; distance >= 1; distance >>= 1) mine.absorb(from_lane(mine, distance));

    if (lane == 0) by_warp[warp] = mine;
    __syncthreads();

    if (threadIdx.x == 0) {
        for (int w = 1; w < N_WARPS; ++w) mine.absorb(by_warp[w]);
        const float variance = mine.m2 / C;
        centre[row] = mine.mu;
        spread[row] = 1.0f / sqrtf(variance + eps);
    }
}

template <int COUNT>
__global__ void __launch_bounds__(BLOCK)
normalise_panel(const float* __restrict__ x, const float* __restrict__ weight, const float* __restrict__ bias,
                const float* __restrict__ centre, const float* __restrict__ spread, float* __restrict__ out,
                int N, int C) {
    __shared__ float pivots[ROWS], centres[ROWS], spreads[ROWS];

    const int top = blockIdx.y * ROWS;
    const int rows = min(ROWS, N - top);
    if (threadIdx.x < rows) {
        const int r = top + threadIdx.x;
        pivots[threadIdx.x] = x[size_t(r) * C];
        centres[threadIdx.x] = centre[r];
        spreads[threadIdx.x] = spread[r];
    }

    // this thread's columns, BLOCK apart so that the warp's accesses are contiguous
    const int left = blockIdx.x * BLOCK * COUNT + threadIdx.x;
    float gain[COUNT], shift[COUNT];
#pragma unroll
    for (int k = 0; k < COUNT; ++k) {
        const int c = left + k * BLOCK;
        gain[k] = c < C ? weight[c] : 0.0f;
        shift[k] = c < C ? bias[c] : 0.0f;
    }
    __syncthreads();   // the rows' statistics are there

    for (int r = 0; r < rows; ++r) {
        const size_t start = size_t(top + r) * C;
        const float pivot = pivots[r], mu = centres[r], scale = spreads[r];
#pragma unroll
        for (int k = 0; k < COUNT; ++k) {
            const int c = left + k * BLOCK;
            if (c < C) out[start + c] = ((x[start + c] - pivot) - mu) * scale * gain[k] + shift[k];
        }
    }
}
