/* evoengine
name: attention_shared_peaks
precision: fp16
summary: two warps share sixteen queries and halve each tile of keys; they exchange the maxima of their rows through shared memory, and their sums at the end
launches:
  - kernel: attend<D, causal>
    grid: ["ceil_div(S, 32)", H, B]
    block: [128]
    args: [q, k, v, out, S, scale]
*/
#include <cuda_fp16.h>

constexpr int THREADS = 128, QUERIES = 32, KEYS = 32;

__device__ __forceinline__ unsigned word(const __half* two) {
    return *reinterpret_cast<const unsigned*>(two);
}

__device__ __forceinline__ unsigned packed(float low, float high) {
    const __half2 pair = __floats2half2_rn(low, high);
    return *reinterpret_cast<const unsigned*>(&pair);
}

__device__ __forceinline__ void multiply(float (&sum)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

template <int D, bool CAUSAL>
__global__ void __launch_bounds__(THREADS)
attend(const __half* __restrict__ q, const __half* __restrict__ k, const __half* __restrict__ v,
       __half* __restrict__ out, int S, float scale) {
    __shared__ __align__(16) __half keys[KEYS][D + 8];
    __shared__ __align__(16) __half turned[D][KEYS + 8];   // the values, a row for each column
    __shared__ float peaks[2][QUERIES];                    // of the tile, by half
    __shared__ __align__(16) float joined[QUERIES][D + 4];
    __shared__ float totals[QUERIES];

    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, group = lane / 4, quad = lane % 4;
    const int half = warp % 2, upper = warp / 2 * 16 + group;   // its keys of a tile; the first of its two rows
    const int first = blockIdx.x * QUERIES;
    const size_t base = (size_t(blockIdx.z) * gridDim.y + blockIdx.y) * S * D;

    unsigned query[D / 16][4];
#pragma unroll
    for (int c = 0; c < D / 16; ++c) {
#pragma unroll
        for (int e = 0; e < 4; ++e) {
            const int row = first + upper + e % 2 * 8, column = c * 16 + e / 2 * 8 + quad * 2;
            query[c][e] = row < S ? word(q + base + size_t(row) * D + column) : 0u;
        }
    }

    float sum[D / 8][4] = {};
    float top[2] = {-1e30f, -1e30f}, total[2] = {0.0f, 0.0f};
    const float factor = scale * 1.44269504f;
    const int end = CAUSAL ? min(S, first + QUERIES) : S;
    for (int start = 0; start < end; start += KEYS) {
        __syncthreads();   // the tile before has been used
        for (int i = threadIdx.x; i < KEYS * D / 8; i += THREADS) {
            const int r = i / (D / 8), c = i % (D / 8) * 8;
            uint4 key = make_uint4(0u, 0u, 0u, 0u), value = key;
            if (start + r < S) {
                key = *reinterpret_cast<const uint4*>(k + base + size_t(start + r) * D + c);
                value = *reinterpret_cast<const uint4*>(v + base + size_t(start + r) * D + c);
            }
            *reinterpret_cast<uint4*>(&keys[r][c]) = key;
            const __half* eight = reinterpret_cast<const __half*>(&value);
#pragma unroll
            for (int j = 0; j < 8; ++j) turned[c + j][r] = eight[j];
        }
        __syncthreads();

        float score[2][4] = {};
#pragma unroll
        for (int c = 0; c < D / 16; ++c) {
#pragma unroll
            for (int n = 0; n < 2; ++n) {
                const __half* row = &keys[half * 16 + n * 8 + group][c * 16 + quad * 2];
                multiply(score[n], query[c], word(row), word(row + 8));
            }
        }
        float peak[2] = {-1e30f, -1e30f};
#pragma unroll
        for (int n = 0; n < 2; ++n) {
#pragma unroll
            for (int e = 0; e < 4; ++e) {
                const int key = start + half * 16 + n * 8 + quad * 2 + e % 2;
                const int row = first + upper + e / 2 * 8;
                const bool seen = key < S && (!CAUSAL || key <= row);
                score[n][e] = seen ? score[n][e] * factor : -INFINITY;
                peak[e / 2] = fmaxf(peak[e / 2], score[n][e]);
            }
        }
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            peak[h] = fmaxf(peak[h], __shfl_xor_sync(0xffffffffu, peak[h], 1));
            peak[h] = fmaxf(peak[h], __shfl_xor_sync(0xffffffffu, peak[h], 2));
            if (quad == 0) peaks[half][upper + h * 8] = peak[h];
        }
        __syncthreads();   // the peaks of the other warp
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            const float high = fmaxf(top[h], fmaxf(peak[h], peaks[half ^ 1][upper + h * 8]));
            const float fade = exp2f(top[h] - high);
            top[h] = high;
            total[h] *= fade;
#pragma unroll
            for (int j = 0; j < D / 8; ++j) {
                sum[j][h * 2] *= fade;
                sum[j][h * 2 + 1] *= fade;
            }
        }
        unsigned weight[4];
#pragma unroll
        for (int n = 0; n < 2; ++n) {
#pragma unroll
            for (int e = 0; e < 4; ++e) {
                score[n][e] = exp2f(score[n][e] - top[e / 2]);
                total[e / 2] += score[n][e];
            }
            weight[n * 2] = packed(score[n][0], score[n][1]);
            weight[n * 2 + 1] = packed(score[n][2], score[n][3]);
        }
#pragma unroll
        for (int j = 0; j < D / 8; ++j) {
            const __half* column = &turned[j * 8 + group][half * 16 + quad * 2];
            multiply(sum[j], weight, word(column), word(column + 8));
        }
    }

#pragma unroll
    for (int h = 0; h < 2; ++h) {
        total[h] += __shfl_xor_sync(0xffffffffu, total[h], 1);
        total[h] += __shfl_xor_sync(0xffffffffu, total[h], 2);
        if (half == 1) {
#pragma unroll
            for (int j = 0; j < D / 8; ++j)
                *reinterpret_cast<float2*>(&joined[upper + h * 8][j * 8 + quad * 2]) =
                    make_float2(sum[j][h * 2], sum[j][h * 2 + 1]);
            if (quad == 0) totals[upper + h * 8] = total[h];
        }
    }
    __syncthreads();
    if (half == 1) return;
#pragma unroll
    for (int h = 0; h < 2; ++h) {
        const int row = first + upper + h * 8;
        if (row >= S) continue;
        const float inverse = 1.0f / (total[h] + totals[upper + h * 8]);
#pragma unroll
        for (int j = 0; j < D / 8; ++j) {
            const int column = j * 8 + quad * 2;
            const float2 other = *reinterpret_cast<const float2*>(&joined[upper + h * 8][column]);
            *reinterpret_cast<__half2*>(out + base + size_t(row) * D + column) = __floats2half2_rn(
                (sum[j][h * 2] + other.x) * inverse, (sum[j][h * 2 + 1] + other.y) * inverse);
        }
    }
}
