/* evoengine
name: layernorm_butterfly_rows
precision: fp32
summary: four rows a block; sums of all of them are folded in one butterfly in which each lane keeps half of its values at every step
tunables:
  WARPS: [4, 8, 2]
  WIDTH: [4, 2, 1]
let:
  ROWS: 4
  W: WIDTH if C % WIDTH == 0 else 1
constants:
  COUNT: C
launches:
  - kernel: layernorm_butterfly<W>
    grid: ["ceil_div(N, ROWS)"]
    block: ["WARPS * WARP_SIZE"]
    args: [x, weight, bias, out, N, eps]
*/
#include <cuda_fp16.h>

namespace {

constexpr int kRows = 4;
constexpr int kThreads = WARPS * 32;
constexpr unsigned kFull = 0xffffffffu;

template <int W>
union alignas(4 * W) Bundle {
    float f[W];
};

// log2 of a power of two
constexpr int bits(int n) { return n <= 1 ? 0 : 1 + bits(n / 2); }

// Every lane comes with K values; lane l leaves with the warp's total of value l / (32 / K).
// A step gives away one half of the values and takes the partner's share of the other half, so
// K - 1 shuffles do what would be 5 K; when one value is left, plain steps finish it.
template <int K>
__device__ __forceinline__ float butterfly(float (&value)[K], int lane) {
    int step = 16;
#pragma unroll
    for (int kept = K / 2; kept >= 1; kept /= 2, step /= 2) {
        const bool upper = (lane & step) != 0;
#pragma unroll
        for (int k = 0; k < kept; ++k) {
            const float give = upper ? value[k] : value[k + kept];
            const float keep = upper ? value[k + kept] : value[k];
            value[k] = keep + __shfl_xor_sync(kFull, give, step);
        }
    }
    float total = value[0];
#pragma unroll
    for (; step >= 1; step /= 2) total += __shfl_xor_sync(kFull, total, step);
    return total;
}

// The block's totals of K values a thread, in `result`, known to all threads.
template <int K>
__device__ __forceinline__ void block_totals(float (&value)[K], float (*partial)[WARPS], float (&result)[K]) {
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const float mine = butterfly<K>(value, lane);
    constexpr int kShare = 32 >> bits(K);   // lanes that know the same total
    if (lane % kShare == 0) partial[lane / kShare][warp] = mine;
    __syncthreads();
#pragma unroll
    for (int k = 0; k < K; ++k) {
        float total = 0.0f;
#pragma unroll
        for (int w = 0; w < WARPS; ++w) total += partial[k][w];
        result[k] = total;
    }
}

}  // namespace

template <int W>
__global__ void __launch_bounds__(kThreads)
layernorm_butterfly(const float* __restrict__ x, const float* __restrict__ weight,
                    const float* __restrict__ bias, float* __restrict__ out, int N, float eps) {
    using B = Bundle<W>;
    constexpr int kBundles = COUNT / W;
    __shared__ float sums[kRows][WARPS];
    __shared__ float moments[2 * kRows][WARPS];

    const int top = blockIdx.x * kRows;
    const B* source[kRows];
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
        const int row = min(top + r, N - 1);   // rows beyond the end: the last one again, not stored
        source[r] = reinterpret_cast<const B*>(x + static_cast<size_t>(row) * COUNT);
    }

    // 1. means
    float total[kRows] = {}, mean[kRows];
    for (int i = threadIdx.x; i < kBundles; i += kThreads) {
#pragma unroll
        for (int r = 0; r < kRows; ++r) {
            const B b = source[r][i];
#pragma unroll
            for (int j = 0; j < W; ++j) total[r] += b.f[j];
        }
    }
    block_totals<kRows>(total, sums, mean);
#pragma unroll
    for (int r = 0; r < kRows; ++r) mean[r] /= COUNT;

    // 2. squared deviations, and the deviations themselves: their mean is the error of the mean
    float spread[2 * kRows] = {}, moment[2 * kRows];
    for (int i = threadIdx.x; i < kBundles; i += kThreads) {
#pragma unroll
        for (int r = 0; r < kRows; ++r) {
            const B b = source[r][i];
#pragma unroll
            for (int j = 0; j < W; ++j) {
                const float d = b.f[j] - mean[r];
                spread[r] = fmaf(d, d, spread[r]);
                spread[kRows + r] += d;
            }
        }
    }
    block_totals<2 * kRows>(spread, moments, moment);

    float scale[kRows], slip[kRows];
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
        slip[r] = moment[kRows + r] / COUNT;
        const float variance = moment[r] / COUNT - slip[r] * slip[r];
        scale[r] = 1.0f / sqrtf(fmaxf(variance, 0.0f) + eps);
    }

    // 3. results: one load of weight and bias serves all rows
    for (int i = threadIdx.x; i < kBundles; i += kThreads) {
        const B gain = reinterpret_cast<const B*>(weight)[i];
        const B lift = reinterpret_cast<const B*>(bias)[i];
#pragma unroll
        for (int r = 0; r < kRows; ++r) {
            if (top + r >= N) break;
            const B b = source[r][i];
            B y;
#pragma unroll
            for (int j = 0; j < W; ++j)
                y.f[j] = fmaf(((b.f[j] - mean[r]) - slip[r]) * scale[r], gain.f[j], lift.f[j]);
            reinterpret_cast<B*>(out + static_cast<size_t>(top + r) * COUNT)[i] = y;
        }
    }
}
