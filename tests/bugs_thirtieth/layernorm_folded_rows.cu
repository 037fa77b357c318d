/* evoengine
name: layernorm_folded_rows
precision: fp32
summary: a block normalises several rows at once; one folding reduction turns the lanes' partial sums of all rows into totals
tunables:
  ROWS: [8, 4, 2]
  WARPS: [4, 8, 2]
  WIDTH: [4, 2, 1]
let:
  V: WIDTH if C % WIDTH == 0 else 1
launches:
  - kernel: normalise<V>
    grid: ["ceil_div(N, ROWS)"]
    block: [32 * WARPS]
    args: [x, weight, bias, out, N, C, eps]
*/

// Why several rows: weight and bias are read once for all of them, and reducing ROWS sums together
// is cheaper than one after the other. An ordinary butterfly takes 5 shuffles a sum. Here the first
// exchange already sends away half of the sums: lanes 16 to 31 go on with the upper half of the rows,
// lanes 0 to 15 with the lower one, and so on, until every lane is left with one row. Eight sums take
// 4 + 2 + 1 + 2 = 9 shuffles where eight butterflies take 40.

namespace {

constexpr int THREADS = 32 * WARPS;
constexpr int GROUP = 32 / ROWS;        // lanes that end up with the same row
constexpr unsigned ALL = 0xffffffffu;
static_assert((ROWS & (ROWS - 1)) == 0 && ROWS <= 32, "rows are halved");

template <int V>
struct alignas(sizeof(float) * V) Floats {
    float f[V];
};

// The sum of values[row] over the warp, where row = lane / GROUP. Destroys `values`.
__device__ __forceinline__ float fold(float (&values)[ROWS], int lane) {
    int reach = 16;
#pragma unroll
    for (int half = ROWS / 2; half > 0; half /= 2, reach /= 2) {
        const bool upper = lane & reach;
#pragma unroll
        for (int i = 0; i < half; ++i) {
            const float kept = upper ? values[i + half] : values[i];
            const float sent = upper ? values[i] : values[i + half];
            values[i] = kept + __shfl_xor_sync(ALL, sent, reach);
        }
    }
    float sum = values[0];
#pragma unroll
    for (int step = GROUP / 2; step > 0; step /= 2) sum += __shfl_xor_sync(ALL, sum, step);
    return sum;
}

// Sums over the whole block. Each use of it has a board of its own, so that one barrier is enough.
struct Board {
    float part[WARPS * ROWS];

    __device__ __forceinline__ void total(float (&values)[ROWS]) {
        const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
        const float sum = fold(values, lane);
        if (lane % GROUP == 0) part[warp * ROWS + lane / GROUP] = sum;
        __syncthreads();
#pragma unroll
        for (int r = 0; r < ROWS; ++r) {
            values[r] = 0.0f;
#pragma unroll
            for (int w = 0; w < WARPS; ++w) values[r] += part[w * ROWS + r];
        }
    }
};

}  // namespace

template <int V>
__global__ void __launch_bounds__(THREADS)
normalise(const float* __restrict__ x, const float* __restrict__ weight, const float* __restrict__ bias,
          float* __restrict__ out, int N, int C, float eps) {
    using Lot = Floats<V>;
    __shared__ Board boards[3];
    const int first = blockIdx.x * ROWS;
    const int lots = C / V;

    // The last block may have fewer rows: it reads the last one again, and does not store it twice.
    const Lot* row[ROWS];
#pragma unroll
    for (int r = 0; r < ROWS; ++r)
        row[r] = reinterpret_cast<const Lot*>(x + static_cast<size_t>(min(first + r, N - 1)) * C);

    float mean[ROWS] = {};
    for (int i = threadIdx.x; i < lots; i += THREADS)
#pragma unroll
        for (int r = 0; r < ROWS; ++r) {
            const Lot lot = row[r][i];
#pragma unroll
            for (int j = 0; j < V; ++j) mean[r] += lot.f[j];
        }
    boards[0].total(mean);
#pragma unroll
    for (int r = 0; r < ROWS; ++r) mean[r] /= C;

    // Squares of the deviations, and the deviations themselves: their mean is what rounding took from `mean`.
    float off[ROWS] = {}, spread[ROWS] = {};
    for (int i = threadIdx.x; i < lots; i += THREADS)
#pragma unroll
        for (int r = 0; r < ROWS; ++r) {
            const Lot lot = row[r][i];
#pragma unroll
            for (int j = 0; j < V; ++j) {
                const float d = lot.f[j] - mean[r];
                off[r] += d;
                spread[r] = fmaf(d, d, spread[r]);
            }
        }
    boards[1].total(off);
    boards[2].total(spread);
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
        off[r] /= C;
        const float variance = fmaxf(spread[r] / C - off[r] * off[r], 0.0f);
        spread[r] = 1.0f / sqrtf(variance + eps);
    }

    const Lot* gains = reinterpret_cast<const Lot*>(weight);
    const Lot* shifts = reinterpret_cast<const Lot*>(bias);
    for (int i = threadIdx.x; i < lots; i += THREADS) {
        const Lot gain = gains[i], shift = shifts[i];
#pragma unroll
        for (int r = 0; r < ROWS; ++r) {
            if (first + r >= N) break;
            const Lot lot = row[r][i];
            Lot result;
#pragma unroll
            for (int j = 0; j < V; ++j)
                result.f[j] = fmaf((lot.f[j] - mean[r]) - off[r], spread[r] * gain.f[j], shift.f[j]);
            reinterpret_cast<Lot*>(out + static_cast<size_t>(first + r) * C)[i] = result;
        }
    }
}
