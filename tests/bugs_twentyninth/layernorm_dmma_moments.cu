/* evoengine
name: layernorm_dmma_moments
precision: fp32
summary: moments of 8 rows at a time in double precision by DMMA, the squares on the diagonal of the rows' Gram matrix
tunables:
  WARPS: [8, 4, 16]
  ROUNDS: [2, 1, 4]
let:
  GROUPS: ceil_div(N, 8)
  V: 4 if C % 4 == 0 else 1
launches:
  - kernel: GramNorm<V>
    grid: ["ceil_div(GROUPS, ROUNDS)"]
    block: ["32 * WARPS"]
    args: [x, weight, bias, out, N, C, GROUPS, eps]
*/

// An m8n8k4 product in double precision takes 8 rows and 4 columns of x as its left operand. Lane l
// holds row l / 4 and column l % 4 of it - and, of the right operand, column l / 4 and row l % 4. So the
// same register given twice multiplies X by its own transpose: the diagonal of the result has the
// sums of squares. With ones on the right every column has the plain sums. The order of the columns
// of x does not matter to either, so a lane may take four neighbours at once.
// Doubles have bits to spare: the variance as a difference of moments loses nothing that a float shows.

constexpr int kRows = 8;
constexpr unsigned kAll = 0xffffffffu;

template <int V> struct alignas(4 * V) Vec { float at[V]; };

struct Tile8x8 {
    double lo = 0.0, hi = 0.0;  // row lane / 4, columns lane % 4 * 2 and the one after it

    __device__ void clear() { lo = hi = 0.0; }
    __device__ void add(double left, double right) {
        asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};"
                     : "+d"(lo), "+d"(hi) : "d"(left), "d"(right));
    }
};

struct Moments { double sum, squares; };
struct Affine { double mean; float scale; };

template <int V>
__device__ Vec<V> LoadOrZero(const float* row, int column, int C) {
    Vec<V> v;
    if (column < C) {
        v = *reinterpret_cast<const Vec<V>*>(row + column);
    } else {
#pragma unroll
        for (int j = 0; j < V; ++j) v.at[j] = 0.0f;
    }
    return v;
}

__device__ Affine Finish(const Moments (&parts)[WARPS][kRows], int row, int C, float eps) {
    double sum = 0.0, squares = 0.0;
    for (int w = 0; w < WARPS; ++w) {
        sum += parts[w][row].sum;
        squares += parts[w][row].squares;
    }
    const double mean = sum / C;
    const double variance = fmax(squares / C - mean * mean, 0.0);
    return {mean, float(1.0 / sqrt(variance + double(eps)))};
}

template <int V>
__global__ void __launch_bounds__(32 * WARPS)
GramNorm(const float* __restrict__ x, const float* __restrict__ weight, const float* __restrict__ bias,
         float* __restrict__ out, int N, int C, int groups, float eps) {
    __shared__ Moments parts[WARPS][kRows];
    __shared__ Affine affine[kRows];

    const int lane = threadIdx.x % 32;
    const int warp = threadIdx.x / 32;
    const int own = lane / 4;   // the row of the group of which this lane loads
    Tile8x8 gram, total;

    for (int round = 0; round < ROUNDS; ++round) {
        const int group = blockIdx.x + round * gridDim.x;
        if (group >= groups) break;
        const int first = group * kRows;

        // Rows beyond the end are the last one again, whose results nobody writes twice.
        const float* row = x + size_t(min(first + own, N - 1)) * C;
        gram.clear();
        total.clear();
        for (int c = warp * 4 * V; c < C; c += WARPS * 4 * V) {
            const Vec<V> v = LoadOrZero<V>(row, c + lane % 4 * V, C);
            __syncwarp(kAll);
#pragma unroll
            for (int j = 0; j < V; ++j) {
                const double value = v.at[j];
                gram.add(value, value);
                total.add(value, 1.0);
            }
        }

        // Element (r, r) lies with lane 4 r + r / 2, low or high as r is even or odd.
        if (lane % 4 == own / 2) {
            const double squares = own % 2 ? gram.hi : gram.lo;
            parts[warp][own] = {total.lo, squares};
        }
        __syncthreads();
        if (threadIdx.x < kRows) affine[threadIdx.x] = Finish(parts, threadIdx.x, C, eps);
        __syncthreads();

        // One row after another, all threads along it. The next round's moments may overwrite parts
        // already; affine has to wait for the barrier behind them.
        for (int r = 0; r < kRows && first + r < N; ++r) {
            const Affine of = affine[r];
            const size_t begin = size_t(first + r) * C;
            for (int c = threadIdx.x * V; c < C; c += 32 * WARPS * V) {
                const Vec<V> v = *reinterpret_cast<const Vec<V>*>(x + begin + c);
                const Vec<V> w = *reinterpret_cast<const Vec<V>*>(weight + c);
                const Vec<V> b = *reinterpret_cast<const Vec<V>*>(bias + c);
                Vec<V> y;
#pragma unroll
                for (int j = 0; j < V; ++j)
                    y.at[j] = fmaf(float(v.at[j] - of.mean) * of.scale, w.at[j], b.at[j]);
                *reinterpret_cast<Vec<V>*>(out + begin + c) = y;
            }
        }
    }
}
