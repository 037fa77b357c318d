/* evoengine
name: attention_key_parts
precision: fp16
summary: the keys of 32 queries are shared out among blocks; a block multiplies 16 keys at a time from one buffer while the next ones wait in registers; a second launch weighs the parts
let:
  PART: max(48, round_up(ceil_div(S, 8), 16))
  PARTS: ceil_div(S, PART)
scratch:
  parts: {dtype: float32, shape: [PARTS, B * H * S, D]}
  logs: {dtype: float32, shape: [PARTS, B * H * S]}
launches:
  - kernel: attend<D, causal>
    grid: ["ceil_div(S, 32)", PARTS, "B * H"]
    block: [64]
    args: [q, k, v, parts, logs, S, PART, scale * 1.4426950408889634]
  - kernel: weigh_parts<D>
    grid: ["B * H * S"]
    block: [D]
    args: [parts, logs, out, PARTS, B * H * S]
*/
#include <cuda_fp16.h>

constexpr int ROWS = 32, KEYS = 16, THREADS = 64;
constexpr int PITCH_V = KEYS + 8;   // the values lie column by column

__device__ __forceinline__ void multiply(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

__device__ __forceinline__ unsigned word(const half* at) { return *reinterpret_cast<const unsigned*>(at); }

__device__ __forceinline__ unsigned pair_of(float low, float high) {
    const half2 both = __floats2half2_rn(low, high);
    return *reinterpret_cast<const unsigned*>(&both);
}

template <int D, bool CAUSAL>
__global__ void __launch_bounds__(THREADS)
attend(const half* __restrict__ q, const half* __restrict__ k, const half* __restrict__ v, float* __restrict__ parts,
       float* __restrict__ logs, int S, int part_size, float scale_2) {
    constexpr int PITCH_K = D + 8, PIECES = KEYS * D / 8 / THREADS;
    __shared__ __align__(16) half s_q[ROWS * PITCH_K];
    __shared__ __align__(16) half s_k[KEYS * PITCH_K];
    __shared__ __align__(16) half s_v[D * PITCH_V];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, group = lane / 4, pair = lane % 4 * 2;
    const int first = blockIdx.x * ROWS, begin = blockIdx.y * part_size;
    const size_t head = size_t(blockIdx.z) * S * D;
    int end = min(S, begin + part_size);
    if (CAUSAL) end = min(end, first + ROWS);

    for (int i = threadIdx.x; i < ROWS * D / 8; i += THREADS) {
        const int r = i / (D / 8), c = i % (D / 8) * 8;
        uint4 piece = make_uint4(0, 0, 0, 0);
        if (first + r < S) piece = *reinterpret_cast<const uint4*>(q + head + size_t(first + r) * D + c);
        *reinterpret_cast<uint4*>(s_q + r * PITCH_K + c) = piece;
    }

    uint4 next_k[PIECES], next_v[PIECES];
    auto fetch = [&](int from) {
        for (int p = 0; p < PIECES; ++p) {
            const int i = threadIdx.x + p * THREADS, key = from + i / (D / 8), c = i % (D / 8) * 8;
            next_k[p] = next_v[p] = make_uint4(0, 0, 0, 0);
            if (key < end) {
                next_k[p] = *reinterpret_cast<const uint4*>(k + head + size_t(key) * D + c);
                next_v[p] = *reinterpret_cast<const uint4*>(v + head + size_t(key) * D + c);
            }
        }
    };
    auto put = [&]() {
        for (int p = 0; p < PIECES; ++p) {
            const int i = threadIdx.x + p * THREADS, key = i / (D / 8), c = i % (D / 8) * 8;
            *reinterpret_cast<uint4*>(s_k + key * PITCH_K + c) = next_k[p];
            const half* eight = reinterpret_cast<const half*>(&next_v[p]);
            for (int e = 0; e < 8; ++e) s_v[(c + e) * PITCH_V + key] = eight[e];
        }
    };

    float sum[D / 8][4] = {};
    float top[2] = {-INFINITY, -INFINITY}, total[2] = {};
    fetch(begin);
    for (int from = begin; from < end; from += KEYS) {
        put();
        __syncthreads();
        if (from + KEYS < end) fetch(from + KEYS);

        float score[2][4] = {};
        for (int d = 0; d < D; d += 16) {
            const half* upper = s_q + (warp * 16 + group) * PITCH_K + d + pair;
            const half* lower = upper + 8 * PITCH_K;
            const unsigned query[4] = {word(upper), word(lower), word(upper + 8), word(lower + 8)};
            for (int n = 0; n < 2; ++n) {
                const half* key = s_k + (n * 8 + group) * PITCH_K + d;
                multiply(score[n], query, word(key + pair), word(key + pair + 8));
            }
        }

        float high[2] = {top[0], top[1]};
        for (int n = 0; n < 2; ++n)
            for (int e = 0; e < 4; ++e) {
                const int key = from + n * 8 + pair + (e & 1), row = first + warp * 16 + group + (e >> 1) * 8;
                if (key >= end || (CAUSAL && key > row)) score[n][e] = -INFINITY;
                else score[n][e] *= scale_2;
                high[e >> 1] = fmaxf(high[e >> 1], score[n][e]);
            }
        for (int h = 0; h < 2; ++h) {
            for (int step = 1; step < 4; step *= 2) high[h] = fmaxf(high[h], __shfl_xor_sync(~0u, high[h], step));
            const float base = high[h] == -INFINITY ? 0.0f : high[h];   // a row may see no key of this part yet
            const float shrink = exp2f(top[h] - base);
            top[h] = high[h];
            total[h] *= shrink;
            for (int n = 0; n < 2; ++n)
                for (int e = 2 * h; e < 2 * h + 2; ++e) {
                    score[n][e] = exp2f(score[n][e] - base);
                    total[h] += score[n][e];
                }
            for (int c = 0; c < D / 8; ++c) {
                sum[c][2 * h] *= shrink;
                sum[c][2 * h + 1] *= shrink;
            }
        }

        const unsigned weight[4] = {pair_of(score[0][0], score[0][1]), pair_of(score[0][2], score[0][3]),
                                    pair_of(score[1][0], score[1][1]), pair_of(score[1][2], score[1][3])};
        for (int c = 0; c < D / 8; ++c) {
            const half* column = s_v + (c * 8 + group) * PITCH_V + pair;
            multiply(sum[c], weight, word(column), word(column + 8));
        }
        __syncthreads();   // both warps are done with these keys
    }

    const size_t rows = size_t(gridDim.z) * S;
    for (int h = 0; h < 2; ++h) {
        for (int step = 1; step < 4; step *= 2) total[h] += __shfl_xor_sync(~0u, total[h], step);
        const int row = first + warp * 16 + group + h * 8;
        if (row >= S) continue;
        const size_t place = blockIdx.y * rows + size_t(blockIdx.z) * S + row;
        const float inverse = total[h] > 0.0f ? 1.0f / total[h] : 0.0f;
        if (pair == 0) logs[place] = total[h] > 0.0f ? top[h] + log2f(total[h]) : -INFINITY;
        for (int c = 0; c < D / 8; ++c) {
            float2* to = reinterpret_cast<float2*>(parts + place * D + c * 8 + pair);
            *to = make_float2(sum[c][2 * h] * inverse, sum[c][2 * h + 1] * inverse);
        }
    }
}

template <int D>
__global__ void __launch_bounds__(D)
weigh_parts(const float* __restrict__ parts, const float* __restrict__ logs, half* __restrict__ out, int count, int rows) {
    const int row = blockIdx.x, column = threadIdx.x;
    float high = -INFINITY;
    for (int p = 0; p < count; ++p) high = fmaxf(high, logs[size_t(p) * rows + row]);
    float value = 0.0f, total = 0.0f;
    for (int p = 0; p < count; ++p) {
        const float share = exp2f(logs[size_t(p) * rows + row] - high);
        value += share * parts[(size_t(p) * rows + row) * D + column];
        total += share;
    }
    out[size_t(row) * D + column] = __float2half(value / total);
}
