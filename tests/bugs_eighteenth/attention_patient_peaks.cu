/* evoengine
name: attention_patient_peaks
precision: fp16
summary: two warps of 16 queries on mma.sync, tiles of 32 keys by cp.async in two stages; sums are rescaled only when the maximum has risen by more than a factor of 256
launches:
  - kernel: attend<D, causal>
    grid: ["ceil_div(S, 32)", "B * H"]
    block: [64]
    args: [q, k, v, out, S, scale * 1.4426950408889634]
*/
#include <cuda_fp16.h>

constexpr int THREADS = 64, ROWS = 32, KEYS = 32;
constexpr float PATIENCE = 8.0f;   // weights may be as large as two to the power of it

__device__ __forceinline__ void multiply(float (&c)[4], const unsigned (&a)[4], unsigned low, unsigned high) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(low), "r"(high));
}

__device__ __forceinline__ unsigned word(__half first, __half second) {
    const __half2 both = __halves2half2(first, second);
    return *reinterpret_cast<const unsigned*>(&both);
}

__device__ __forceinline__ unsigned rounded(float first, float second) { return word(__float2half(first), __float2half(second)); }

__device__ __forceinline__ void fetch(__half* to, const __half* from) {
    const unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(to));
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(address), "l"(from) : "memory");
}

template <int D, bool CAUSAL>
__global__ void __launch_bounds__(THREADS)
attend(const __half* __restrict__ q, const __half* __restrict__ k, const __half* __restrict__ v, __half* __restrict__ out,
       int S, float factor) {
    constexpr int PITCH = D + 8;
    __shared__ __align__(16) __half keys[2][KEYS * PITCH], values[2][KEYS * PITCH];
    const int lane = threadIdx.x % 32, group = lane / 4, pair = lane % 4 * 2;
    const int first = blockIdx.x * ROWS + threadIdx.x / 32 * 16;
    const size_t base = size_t(blockIdx.y) * S * D;

    // Keys behind the last one are copies of it, which the mask hides.
    auto fetch_tile = [&](int start, int stage) {
        for (int i = threadIdx.x; i < KEYS * D / 8; i += THREADS) {
            const int r = i / (D / 8), c = i % (D / 8) * 8;
            const size_t from = base + size_t(min(start + r, S - 1)) * D + c;
            fetch(&keys[stage][r * PITCH + c], k + from);
            fetch(&values[stage][r * PITCH + c], v + from);
        }
        asm volatile("cp.async.commit_group;" ::: "memory");
    };

    unsigned query[D / 16][4];
#pragma unroll
    for (int d = 0; d < D / 16; ++d)
#pragma unroll
        for (int e = 0; e < 4; ++e) {
            const int row = min(first + group + e % 2 * 8, S - 1);
            query[d][e] = *reinterpret_cast<const unsigned*>(q + base + size_t(row) * D + d * 16 + e / 2 * 8 + pair);
        }

    float sum[D / 8][4] = {}, total[2] = {}, mark[2] = {-INFINITY, -INFINITY};
    const int end = CAUSAL ? min(S, int(blockIdx.x + 1) * ROWS) : S;
    fetch_tile(0, 0);
    int stage = 0;
    for (int start = 0; start < end; start += KEYS, stage = 1 - stage) {
        if (start + KEYS < end) {
            fetch_tile(start + KEYS, 1 - stage);
            asm volatile("cp.async.wait_group 1;" ::: "memory");
        } else {
            asm volatile("cp.async.wait_group 0;" ::: "memory");
        }
        __syncthreads();

        float score[KEYS / 8][4] = {};
#pragma unroll
        for (int n = 0; n < KEYS / 8; ++n) {
#pragma unroll
            for (int d = 0; d < D / 16; ++d) {
                const __half* key = &keys[stage][(n * 8 + group) * PITCH + d * 16 + pair];
                multiply(score[n], query[d], word(key[0], key[1]), word(key[8], key[9]));
            }
#pragma unroll
            for (int e = 0; e < 4; ++e) {
                const int place = start + n * 8 + pair + e % 2, row = first + group + e / 2 * 8;
                const bool seen = place < S && (!CAUSAL || place <= row);
                score[n][e] = seen ? score[n][e] * factor : -INFINITY;
            }
        }
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            float high = -INFINITY;
#pragma unroll
            for (int n = 0; n < KEYS / 8; ++n) high = fmaxf(high, fmaxf(score[n][2 * h], score[n][2 * h + 1]));
            high = fmaxf(high, __shfl_xor_sync(0xffffffffu, high, 1));
            high = fmaxf(high, __shfl_xor_sync(0xffffffffu, high, 2));
            if (high > mark[h] + PATIENCE) {
                const float fade = exp2f(mark[h] - high);
                mark[h] = high;
                total[h] *= fade;
#pragma unroll
                for (int c = 0; c < D / 8; ++c) {
                    sum[c][2 * h] *= fade;
                    sum[c][2 * h + 1] *= fade;
                }
            }
#pragma unroll
            for (int n = 0; n < KEYS / 8; ++n)
#pragma unroll
                for (int e = 2 * h; e < 2 * h + 2; ++e) {
                    score[n][e] = exp2f(score[n][e] - mark[h]);
                    total[h] += score[n][e];
                }
        }
#pragma unroll
        for (int j = 0; j < KEYS / 16; ++j) {
            const float (&left)[4] = score[2 * j], (&right)[4] = score[2 * j + 1];
            const unsigned weights[4] = {rounded(left[0], left[1]), rounded(left[2], left[3]), rounded(right[0], right[1]),
                                         rounded(right[2], right[3])};
#pragma unroll
            for (int c = 0; c < D / 8; ++c) {
                const __half* value = &values[stage][(j * 16 + pair) * PITCH + c * 8 + group];
                multiply(sum[c], weights, word(value[0], value[PITCH]), word(value[8 * PITCH], value[9 * PITCH]));
            }
        }
        __syncthreads();   // the stage may be filled again
    }

#pragma unroll
    for (int h = 0; h < 2; ++h) {
        total[h] += __shfl_xor_sync(0xffffffffu, total[h], 1);
        total[h] += __shfl_xor_sync(0xffffffffu, total[h], 2);
        const int row = first + group + 8 * h;
        if (row >= S) continue;
#pragma unroll
        for (int c = 0; c < D / 8; ++c)
            *reinterpret_cast<unsigned*>(out + base + size_t(row) * D + c * 8 + pair) =
                rounded(sum[c][2 * h] / total[h], sum[c][2 * h + 1] / total[h]);
    }
}
