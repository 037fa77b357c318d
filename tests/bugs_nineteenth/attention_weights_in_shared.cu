/* evoengine
name: attention_weights_in_shared
precision: fp16
summary: single-precision lanes; a warp has two queries, a lane one key of a tile for the scores and every 32nd column for the sums, and the weights pass from one to the other through shared memory
launches:
  - kernel: attend<D, causal>
    grid: ["ceil_div(S, 8)", H, B]
    block: [32, 4]
    args: [q, k, v, out, S, H, scale]
*/
#include <cuda_fp16.h>

constexpr int WARPS = 4, OWN = 2, QUERIES = WARPS * OWN, KEYS = 32, THREADS = WARPS * 32;
constexpr unsigned FULL = 0xffffffffu;
constexpr float LOG2_E = 1.4426950408889634f;

__device__ __forceinline__ float warp_max(float x) {
#pragma unroll
    for (int mask = 16; mask > 0; mask >>= 1) x = fmaxf(x, __shfl_xor_sync(FULL, x, mask));
    return x;
}

__device__ __forceinline__ float warp_sum(float x) {
#pragma unroll
    for (int mask = 16; mask > 0; mask >>= 1) x += __shfl_xor_sync(FULL, x, mask);
    return x;
}

template <int D, bool CAUSAL>
__global__ void __launch_bounds__(THREADS)
attend(const __half* __restrict__ q, const __half* __restrict__ k, const __half* __restrict__ v, __half* __restrict__ out,
       int S, int H, float scale) {
    constexpr int COLUMNS = D / 32;   // of a lane
    __shared__ float query_tile[QUERIES][D];
    __shared__ __half key_tile[KEYS][D + 2];   // lanes read down a column, in different banks
    __shared__ __half value_tile[KEYS][D];
    __shared__ float weights[WARPS][OWN][KEYS];

    const int lane = threadIdx.x, warp = threadIdx.y, tid = warp * 32 + lane;
    const int first = blockIdx.x * QUERIES;
    const size_t head = (size_t(blockIdx.z) * H + blockIdx.y) * S * D;
    for (int i = tid; i < QUERIES * D; i += THREADS) {
        const int r = i / D, d = i % D;
        query_tile[r][d] = first + r < S ? __half2float(q[head + size_t(first + r) * D + d]) * (scale * LOG2_E) : 0.0f;
    }

    float acc[OWN][COLUMNS] = {}, row_max[OWN], row_sum[OWN];
#pragma unroll
    for (int r = 0; r < OWN; ++r) row_max[r] = -INFINITY, row_sum[r] = 0.0f;

    const int last = CAUSAL ? min(S, first + QUERIES) : S;
    for (int start = 0; start < last; start += KEYS) {
        const int count = min(KEYS, S - start);
        for (int i = tid; i < KEYS * D / 2; i += THREADS) {
            const int r = i / (D / 2), d = i % (D / 2) * 2;
            __half2 key = __float2half2_rn(0.0f), value = __float2half2_rn(0.0f);
            if (r < count) {
                key = *reinterpret_cast<const __half2*>(k + head + size_t(start + r) * D + d);
                value = *reinterpret_cast<const __half2*>(v + head + size_t(start + r) * D + d);
            }
            *reinterpret_cast<__half2*>(&key_tile[r][d]) = key;
            *reinterpret_cast<__half2*>(&value_tile[r][d]) = value;
        }
        __syncthreads();

        float score[OWN] = {};
#pragma unroll 4
        for (int d = 0; d < D; d += 2) {
            const float2 key = __half22float2(*reinterpret_cast<const __half2*>(&key_tile[lane][d]));
#pragma unroll
            for (int r = 0; r < OWN; ++r) {
                score[r] = fmaf(query_tile[warp * OWN + r][d], key.x, score[r]);
                score[r] = fmaf(query_tile[warp * OWN + r][d + 1], key.y, score[r]);
            }
        }
#pragma unroll
        for (int r = 0; r < OWN; ++r) {
            const int query = first + warp * OWN + r;
            const bool visible = lane < count && (!CAUSAL || start + lane <= query);
            const float s = visible ? score[r] : -INFINITY;
            const float new_max = fmaxf(row_max[r], warp_max(s));
            const float alpha = exp2f(row_max[r] - new_max);
            const float p = exp2f(s - new_max);
            row_max[r] = new_max;
            row_sum[r] = row_sum[r] * alpha + warp_sum(p);
#pragma unroll
            for (int c = 0; c < COLUMNS; ++c) acc[r][c] *= alpha;
            weights[warp][r][lane] = p;
        }
        __syncwarp();   // the weights of the warp are complete

#pragma unroll 4
        for (int j = 0; j < KEYS; ++j)
#pragma unroll
            for (int c = 0; c < COLUMNS; ++c) {
                const float value = __half2float(value_tile[j][lane + 32 * c]);
#pragma unroll
                for (int r = 0; r < OWN; ++r) acc[r][c] = fmaf(weights[warp][r][j], value, acc[r][c]);
            }
        __syncthreads();   // tiles and weights may be written again
    }

#pragma unroll
    for (int r = 0; r < OWN; ++r) {
        const int query = first + warp * OWN + r;
        if (query < S) {
            const float inverse = 1.0f / row_sum[r];
#pragma unroll
            for (int c = 0; c < COLUMNS; ++c)
                out[head + size_t(query) * D + lane + 32 * c] = __float2half(acc[r][c] * inverse);
        }
    }
}
