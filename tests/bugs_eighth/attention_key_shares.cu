/* evoengine
name: attention_key_shares
precision: fp16
summary: a block has 8 queries; each of its four warps has every fourth tile of 32 keys, one key a lane, and their shares are joined in shared memory
launches:
  - kernel: attention<D, causal>
    grid: ["ceil_div(S, 8)", H, B]
    block: [128]
    args: [q, k, v, out, S, scale]
*/
#include <cuda_fp16.h>

constexpr int QUERIES = 8, SHARES = 4;
constexpr float LOWEST = -1e30f;

__device__ __forceinline__ float power(float x) { return __expf(x); }

template <int D, bool CAUSAL>
__global__ void __launch_bounds__(32 * SHARES)
attention(const half* __restrict__ q, const half* __restrict__ k, const half* __restrict__ v, half* __restrict__ out, int S,
          float scale) {
    constexpr int OWN = D / 64;   // pairs of columns of a lane
    __shared__ float queries[QUERIES][D];
    __shared__ float share_sums[SHARES][QUERIES][D];
    __shared__ float share_tops[SHARES][QUERIES], share_totals[SHARES][QUERIES];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int first = blockIdx.x * QUERIES;
    const size_t head = (size_t(blockIdx.z) * gridDim.y + blockIdx.y) * S * D;
    const half *own_keys = k + head, *own_values = v + head;

    for (int i = threadIdx.x; i < QUERIES * D; i += 32 * SHARES) {
        const int row = min(first + i / D, S - 1);
        queries[i / D][i % D] = __half2float(q[head + size_t(row) * D + i % D]) * scale;
    }
    __syncthreads();

    float2 sum[QUERIES][OWN] = {};
    float top[QUERIES], total[QUERIES] = {};
    for (int i = 0; i < QUERIES; ++i) top[i] = LOWEST;
    const int end = CAUSAL ? min(S, first + QUERIES) : S;
    for (int start = warp * 32; start < end; start += 32 * SHARES) {
        const int key = start + lane, inside = min(key, S - 1);
        float score[QUERIES] = {};
        for (int d = 0; d < D; d += 8) {
            const uint4 piece = *reinterpret_cast<const uint4*>(own_keys + size_t(inside) * D + d);
            const half2* pairs = reinterpret_cast<const half2*>(&piece);
            for (int e = 0; e < 4; ++e) {
                const float2 both = __half22float2(pairs[e]);
                for (int i = 0; i < QUERIES; ++i)
                    score[i] += queries[i][d + 2 * e] * both.x + queries[i][d + 2 * e + 1] * both.y;
            }
        }
        for (int i = 0; i < QUERIES; ++i) {
            const bool seen = key < S && (!CAUSAL || key <= first + i);
            float high = seen ? score[i] : LOWEST;
            for (int step = 16; step > 0; step /= 2) high = fmaxf(high, __shfl_xor_sync(~0u, high, step));
            high = fmaxf(high, top[i]);
            const float shrink = power(top[i] - high);
            score[i] = seen ? power(score[i] - high) : 0.0f;
            total[i] = total[i] * shrink + score[i];
            for (int c = 0; c < OWN; ++c) {
                sum[i][c].x *= shrink;
                sum[i][c].y *= shrink;
            }
            top[i] = high;
        }
        const int count = min(32, S - start);
        for (int j = 0; j < count; ++j)
            for (int c = 0; c < OWN; ++c) {
                const half2* from = reinterpret_cast<const half2*>(own_values + size_t(start + j) * D);
                const float2 value = __half22float2(from[c * 32 + lane]);
                for (int i = 0; i < QUERIES; ++i) {
                    const float weight = __shfl_sync(~0u, score[i], j);
                    sum[i][c].x += weight * value.x;
                    sum[i][c].y += weight * value.y;
                }
            }
    }

    for (int i = 0; i < QUERIES; ++i) {
        for (int step = 16; step > 0; step /= 2) total[i] += __shfl_xor_sync(~0u, total[i], step);
        for (int c = 0; c < OWN; ++c) {
            share_sums[warp][i][c * 64 + lane * 2] = sum[i][c].x;
            share_sums[warp][i][c * 64 + lane * 2 + 1] = sum[i][c].y;
        }
        if (lane == 0) {
            share_tops[warp][i] = top[i];
            share_totals[warp][i] = total[i];
        }
    }
    __syncthreads();

    for (int i = threadIdx.x; i < QUERIES * D; i += 32 * SHARES) {
        const int own = i / D, column = i % D;
        if (first + own >= S) break;
        float high = LOWEST, joined = 0.0f, weights = 0.0f;
        for (int s = 0; s < SHARES; ++s) high = fmaxf(high, share_tops[s][own]);
        for (int s = 0; s < SHARES; ++s) {
            const float factor = power(share_tops[s][own] - high);
            joined += factor * share_sums[s][own][column];
            weights += factor * share_totals[s][own];
        }
        out[head + size_t(first + own) * D + column] = __float2half(joined / weights);
    }
}
