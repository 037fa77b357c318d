/* evoengine
name: attention_mma_rows
precision: fp16
summary: a warp has 16 queries, whose scores become the fragments of their weights; values lie transposed in shared memory
launches:
  - kernel: attention<D, causal>
    grid: ["ceil_div(S, 64)", "B * H"]
    block: [128]
    args: [q, k, v, out, S, scale]
*/
#include <cuda_fp16.h>

constexpr int ROWS = 64, KEYS = 32, THREADS = 128, VALUE_PITCH = KEYS + 8;

__device__ __forceinline__ void mma(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

__device__ __forceinline__ unsigned word(const half* from) { return *reinterpret_cast<const unsigned*>(from); }

__device__ __forceinline__ unsigned packed(float low, float high) {
    const half2 both = __floats2half2_rn(low, high);
    return *reinterpret_cast<const unsigned*>(&both);
}

template <int D, bool CAUSAL>
__global__ void __launch_bounds__(THREADS)
attention(const half* __restrict__ q, const half* __restrict__ k, const half* __restrict__ v, half* __restrict__ out, int S,
          float scale) {
    constexpr int PITCH = D + 8;
    __shared__ __align__(16) half keys[KEYS * PITCH];            // [key][column]
    __shared__ __align__(16) half values[D * VALUE_PITCH];       // [column][key]
    const int lane = threadIdx.x % 32, group = lane / 4, pair = lane % 4 * 2;
    const int first = blockIdx.x * ROWS, row = first + threadIdx.x / 32 * 16 + group;
    const size_t head = size_t(blockIdx.y) * S * D;

    unsigned query[D / 16][4];
    for (int d = 0; d < D / 16; ++d)
        for (int i = 0; i < 4; ++i) {
            const int at = row + i % 2 * 8;
            query[d][i] = at < S ? word(q + head + size_t(at) * D + d * 16 + i / 2 * 8 + pair) : 0u;
        }

    float sum[D / 8][4] = {};
    float top[2] = {-INFINITY, -INFINITY}, total[2] = {};
    const float to_base_2 = scale * 1.4426950408889634f;
    const int end = CAUSAL ? min(S, first + ROWS) : S;
    for (int start = 0; start < end; start += KEYS) {
        __syncthreads();
        for (int i = threadIdx.x; i < KEYS * D / 8; i += THREADS) {
            const int r = i / (D / 8), c = i % (D / 8) * 8;
            uint4 piece = make_uint4(0, 0, 0, 0), other = piece;
            if (start + r < S) {
                piece = *reinterpret_cast<const uint4*>(k + head + size_t(start + r) * D + c);
                other = *reinterpret_cast<const uint4*>(v + head + size_t(start + r) * D + c);
            }
            *reinterpret_cast<uint4*>(keys + r * PITCH + c) = piece;
            const half* eight = reinterpret_cast<const half*>(&other);
            for (int e = 0; e < 8; ++e) values[(c + e) * VALUE_PITCH + r] = eight[e];
        }
        __syncthreads();

        float score[KEYS / 8][4] = {};
        for (int d = 0; d < D / 16; ++d)
            for (int n = 0; n < KEYS / 8; ++n) {
                const half* from = keys + (n * 8 + group) * PITCH + d * 16 + pair;
                mma(score[n], query[d], word(from), word(from + 8));
            }

        float high[2] = {top[0], top[1]};
        for (int n = 0; n < KEYS / 8; ++n)
            for (int e = 0; e < 4; ++e) {
                const int key = start + n * 8 + pair + e % 2, own = row + e / 2 * 8;
                const bool seen = key < S && (!CAUSAL || key <= own);
                score[n][e] = seen ? score[n][e] * to_base_2 : -INFINITY;
                high[e / 2] = fmaxf(high[e / 2], score[n][e]);
            }
        float shrink[2];
        for (int h = 0; h < 2; ++h) {
            high[h] = fmaxf(high[h], __shfl_xor_sync(~0u, high[h], 1));
            high[h] = fmaxf(high[h], __shfl_xor_sync(~0u, high[h], 2));
            shrink[h] = exp2f(top[h] - high[h]);
            total[h] *= shrink[h];
            top[h] = high[h];
        }
        for (int n = 0; n < KEYS / 8; ++n)
            for (int e = 0; e < 4; ++e) {
                score[n][e] = exp2f(score[n][e] - top[e / 2]);
                total[e / 2] += score[n][e];
            }
        for (int c = 0; c < D / 8; ++c)
            for (int e = 0; e < 4; ++e) sum[c][e] *= shrink[e / 2];

        for (int j = 0; j < KEYS / 16; ++j) {
            const float(&left)[4] = score[2 * j], (&right)[4] = score[2 * j + 1];
            const unsigned weight[4] = {packed(left[0], left[1]), packed(left[2], left[3]), packed(right[0], right[1]),
                                        packed(right[2], right[3])};
            for (int c = 0; c < D / 8; ++c) {
                const half* from = values + (c * 8 + group) * VALUE_PITCH + j * 16 + pair;
                mma(sum[c], weight, word(from), word(from + 8));
            }
        }
    }

    for (int h = 0; h < 2; ++h) {
        total[h] += __shfl_xor_sync(~0u, total[h], 1);
        total[h] += __shfl_xor_sync(~0u, total[h], 2);
        const int at = row + h * 8;
        if (at >= S) continue;
        const float inverse = 1.0f / total[h];
        for (int c = 0; c < D / 8; ++c)
            *reinterpret_cast<half2*>(out + head + size_t(at) * D + c * 8 + pair) =
                __floats2half2_rn(sum[c][2 * h] * inverse, sum[c][2 * h + 1] * inverse);
    }
}
