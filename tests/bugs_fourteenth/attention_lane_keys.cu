/* evoengine
name: attention_lane_keys
precision: fp16
summary: a warp has four queries; for the scores each lane has a key, for the sums of values a pair of columns
launches:
  - kernel: attend<D, causal>
    grid: ["ceil_div(S, 16)", H, B]
    block: [32, 4]
    args: [q, k, v, out, S, scale]
*/
#include <cuda_fp16.h>

constexpr int WARPS = 4, EACH = 4, ROWS = WARPS * EACH, KEYS = 32;
constexpr float LOG2E = 1.44269504f;

__device__ __forceinline__ float warp_max(float value) {
#pragma unroll
    for (int offset = 16; offset > 0; offset >>= 1)
        value = fmaxf(value, __shfl_xor_sync(0xffffffffu, value, offset));
    return value;
}

__device__ __forceinline__ float warp_sum(float value) {
#pragma unroll
    for (int offset = 16; offset > 0; offset >>= 1)
        value += __shfl_xor_sync(0xffffffffu, value, offset);
    return value;
}

template <int D, bool CAUSAL>
__global__ void __launch_bounds__(32 * WARPS)
attend(const __half* __restrict__ q, const __half* __restrict__ k, const __half* __restrict__ v,
       __half* __restrict__ out, int S, float scale) {
    constexpr int PAIRS = D / 64;   // pairs of columns of a lane: lane * 2 + j * 64
    __shared__ float2 queries[ROWS][D / 2];
    __shared__ __half2 keys[KEYS][D / 2 + 1];   // an odd pitch: lanes read rows without conflicts
    __shared__ __half2 values[KEYS][D / 2];
    __shared__ float weights[WARPS][EACH][KEYS];

    const int lane = threadIdx.x, warp = threadIdx.y, thread = warp * 32 + lane;
    const int first = blockIdx.x * ROWS;
    const size_t base = (size_t(blockIdx.z) * gridDim.y + blockIdx.y) * S * D;

    for (int i = thread; i < ROWS * D / 2; i += 32 * WARPS) {
        const int r = i / (D / 2), c = i % (D / 2);
        float2 pair = make_float2(0.0f, 0.0f);
        if (first + r < S)
            pair = __half22float2(reinterpret_cast<const __half2*>(q + base + size_t(first + r) * D)[c]);
        queries[r][c] = make_float2(pair.x * scale * LOG2E, pair.y * scale * LOG2E);
    }

    float top[EACH], total[EACH];
    float2 sum[EACH][PAIRS];
#pragma unroll
    for (int r = 0; r < EACH; ++r) {
        top[r] = -1e30f;
        total[r] = 0.0f;
#pragma unroll
        for (int j = 0; j < PAIRS; ++j) sum[r][j] = make_float2(0.0f, 0.0f);
    }

    const int end = CAUSAL ? min(S, first + ROWS) : S;
    for (int start = 0; start < end; start += KEYS) {
        __syncthreads();
        for (int i = thread; i < KEYS * D / 2; i += 32 * WARPS) {
            const int r = i / (D / 2), c = i % (D / 2);
            __half2 key = __floats2half2_rn(0.0f, 0.0f), value = key;
            if (start + r < S) {
                key = reinterpret_cast<const __half2*>(k + base + size_t(start + r) * D)[c];
                value = reinterpret_cast<const __half2*>(v + base + size_t(start + r) * D)[c];
            }
            keys[r][c] = key;
            values[r][c] = value;
        }
        __syncthreads();

        float score[EACH] = {};
        for (int c = 0; c < D / 2; ++c) {
            const float2 key = __half22float2(keys[lane][c]);
#pragma unroll
            for (int r = 0; r < EACH; ++r) {
                const float2 query = queries[warp * EACH + r][c];
                score[r] = fmaf(query.x, key.x, fmaf(query.y, key.y, score[r]));
            }
        }
        const int key = start + lane;
#pragma unroll
        for (int r = 0; r < EACH; ++r) {
            const int row = first + warp * EACH + r;
            if (key >= S || (CAUSAL && key > row)) score[r] = -INFINITY;
            const float high = fmaxf(top[r], warp_max(score[r]));
            const float fade = exp2f(top[r] - high);
            const float weight = exp2f(score[r] - high);
            total[r] = total[r] * fade + weight;   // of the lane's own keys
            top[r] = high;
#pragma unroll
            for (int j = 0; j < PAIRS; ++j) {
                sum[r][j].x *= fade;
                sum[r][j].y *= fade;
            }
            weights[warp][r][lane] = weight;
        }
        __syncwarp();
        for (int n = 0; n < KEYS; ++n) {
#pragma unroll
            for (int j = 0; j < PAIRS; ++j) {
                const float2 value = __half22float2(values[n][lane + j * 32]);
#pragma unroll
                for (int r = 0; r < EACH; ++r) {
                    sum[r][j].x = fmaf(weights[warp][r][n], value.x, sum[r][j].x);
                    sum[r][j].y = fmaf(weights[warp][r][n], value.y, sum[r][j].y);
                }
            }
        }
    }

#pragma unroll
    for (int r = 0; r < EACH; ++r) {
        const int row = first + warp * EACH + r;
        const float inverse = 1.0f / warp_sum(total[r]);
        if (row >= S) continue;
        __half2* target = reinterpret_cast<__half2*>(out + base + size_t(row) * D);
#pragma unroll
        for (int j = 0; j < PAIRS; ++j)
            target[lane + j * 32] = __floats2half2_rn(sum[r][j].x * inverse, sum[r][j].y * inverse);
    }
}
