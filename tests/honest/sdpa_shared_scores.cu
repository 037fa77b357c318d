/* evoengine
name: sdpa_shared_scores
precision: fp16
summary: a block computes all scores of a few queries in shared memory, takes the exact softmax, then multiplies by V
tunables:
  QUERIES: [4, 2, 1]
require:
  - 4 * QUERIES * (S + D) <= MAX_SHARED_BYTES
launches:
  - kernel: attention<causal>
    grid: ["ceil_div(S, QUERIES)", "B * H"]
    block: [128]
    shared: 4 * QUERIES * (S + D)
    args: [q, k, v, out, S, D, scale]
*/
#include <cuda_fp16.h>

__device__ float warp_max(float x) {
    for (int o = 16; o; o >>= 1) x = fmaxf(x, __shfl_xor_sync(~0u, x, o));
    return x;
}
__device__ float warp_sum(float x) {
    for (int o = 16; o; o >>= 1) x += __shfl_xor_sync(~0u, x, o);
    return x;
}

template <bool CAUSAL>
__global__ void attention(const __half* __restrict__ q, const __half* __restrict__ k, const __half* __restrict__ v, __half* __restrict__ out,
                          int S, int D, float scale) {
    extern __shared__ float dynamic[];
    float* scores = dynamic;                 // [QUERIES][S]
    float* queries = dynamic + QUERIES * S;  // [QUERIES][D]
    __shared__ float inverse[QUERIES];
    const size_t head = size_t(blockIdx.y) * S * D;
    const int first = blockIdx.x * QUERIES, rows = min(QUERIES, S - first);
    for (int i = threadIdx.x; i < rows * D; i += 128) queries[i] = __half2float(q[head + size_t(first) * D + i]) * scale;
    __syncthreads();

    const int keys = CAUSAL ? first + rows : S;   // of the last query; the others ignore the rest
    for (int j = threadIdx.x; j < keys; j += 128) {
        float s[QUERIES] = {};
        const uint4* key = reinterpret_cast<const uint4*>(k + head + size_t(j) * D);
        for (int piece = 0; piece < D / 8; ++piece) {
            const uint4 eight = key[piece];
            const __half2* pairs = reinterpret_cast<const __half2*>(&eight);
#pragma unroll
            for (int p = 0; p < 4; ++p) {
                const float2 x = __half22float2(pairs[p]);
#pragma unroll
                for (int r = 0; r < QUERIES; ++r)
                    if (r < rows) s[r] += x.x * queries[r * D + piece * 8 + p * 2] + x.y * queries[r * D + piece * 8 + p * 2 + 1];
            }
        }
#pragma unroll
        for (int r = 0; r < QUERIES; ++r)
            if (r < rows) scores[r * S + j] = CAUSAL && j > first + r ? -INFINITY : s[r];
    }
    __syncthreads();

    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    for (int r = warp; r < rows; r += 4) {
        float top = -INFINITY, total = 0.0f;
        for (int j = lane; j < keys; j += 32) top = fmaxf(top, scores[r * S + j]);
        top = warp_max(top);
        for (int j = lane; j < keys; j += 32) {
            const float p = expf(scores[r * S + j] - top);
            scores[r * S + j] = p;
            total += p;
        }
        total = warp_sum(total);
        if (lane == 0) inverse[r] = 1.0f / total;
    }
    __syncthreads();

    for (int i = threadIdx.x; i < rows * D; i += 128) {
        const int r = i / D, d = i % D;
        float sum = 0.0f;
        for (int j = 0; j < keys; ++j) sum += scores[r * S + j] * __half2float(v[head + size_t(j) * D + d]);
        out[head + size_t(first) * D + i] = __float2half(sum * inverse[r]);
    }
}
