/* evoengine
name: sdpa_last_block_merges
precision: fp16
summary: keys split among blocks; the block that finishes a query tile last merges the partial results and resets its counter
tunables:
  MOST_SPLITS: [4, 2, 8]
  QUERIES: [8, 4]           # warps of a block, one query each
let:
  SPLITS: max(1, min(MOST_SPLITS, ceil_div(S, 64)))
  SPAN: ceil_div(S, SPLITS)
  TILES: ceil_div(S, QUERIES)
require:
  - TILES * B * H <= 12288
scratch:
  partial: {dtype: float32, shape: ["B * H", TILES, SPLITS, QUERIES, "D + 4"]}
launches:
  - kernel: attention<D, causal>
    grid: [SPLITS, TILES, "B * H"]
    block: [WARP_SIZE, QUERIES]
    args: [q, k, v, partial, out, S, SPAN, scale]
*/
#include <cuda_fp16.h>

// How many blocks of a tile are done. The last one sets it back, so that each launch begins with zeros.
__device__ int done[12288];

__device__ __forceinline__ float sum_lanes(float x) {
    x += __shfl_xor_sync(0xffffffff, x, 1);
    x += __shfl_xor_sync(0xffffffff, x, 2);
    x += __shfl_xor_sync(0xffffffff, x, 4);
    x += __shfl_xor_sync(0xffffffff, x, 8);
    return x + __shfl_xor_sync(0xffffffff, x, 16);
}

template <int D, bool CAUSAL>
__global__ void __launch_bounds__(32 * QUERIES)
attention(const __half* __restrict__ q, const __half* __restrict__ k, const __half* __restrict__ v, float* partial, __half* __restrict__ out,
          int S, int span, float scale) {
    constexpr int E = D / 32;   // elements of a lane
    __shared__ int ticket;
    const int lane = threadIdx.x, row = blockIdx.y * QUERIES + threadIdx.y, splits = gridDim.x;
    const size_t head = size_t(blockIdx.z) * S * D;
    const int tile = blockIdx.z * gridDim.y + blockIdx.y;
    float* mine = partial + ((size_t(tile) * splits + blockIdx.x) * QUERIES + threadIdx.y) * (D + 4);

    if (row < S) {
        float query[E], acc[E] = {}, top = -INFINITY, total = 0.0f;
#pragma unroll
        for (int e = 0; e < E; ++e) query[e] = __half2float(q[head + size_t(row) * D + e * 32 + lane]) * scale;
        const int begin = blockIdx.x * span, end = min(CAUSAL ? row + 1 : S, begin + span);
        for (int j = begin; j < end; ++j) {
            const __half* key = k + head + size_t(j) * D;
            const __half* value = v + head + size_t(j) * D;
            float s = 0.0f;
#pragma unroll
            for (int e = 0; e < E; ++e) s += query[e] * __half2float(key[e * 32 + lane]);
            s = sum_lanes(s);
            const float next = fmaxf(top, s), keep = __expf(top - next), p = __expf(s - next);
            top = next;
            total = total * keep + p;
#pragma unroll
            for (int e = 0; e < E; ++e) acc[e] = acc[e] * keep + p * __half2float(value[e * 32 + lane]);
        }
#pragma unroll
        for (int e = 0; e < E; ++e) mine[e * 32 + lane] = acc[e];
        if (lane == 0) mine[D] = top, mine[D + 1] = total;
    }
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0 && threadIdx.y == 0) ticket = atomicAdd(&done[tile], 1);
    __syncthreads();
    if (ticket != splits - 1) return;
    if (threadIdx.x == 0 && threadIdx.y == 0) done[tile] = 0;
    __threadfence();
    if (row >= S) return;

    const float* all = partial + (size_t(tile) * splits * QUERIES + threadIdx.y) * (D + 4);
    const int stride = QUERIES * (D + 4);
    float top = -INFINITY, total = 0.0f, acc[E] = {};
    for (int s = 0; s < splits; ++s) top = fmaxf(top, __ldcg(all + s * stride + D));
    for (int s = 0; s < splits; ++s) {
        const float factor = __expf(__ldcg(all + s * stride + D) - top);
        total += factor * __ldcg(all + s * stride + D + 1);
#pragma unroll
        for (int e = 0; e < E; ++e) acc[e] += factor * __ldcg(all + s * stride + e * 32 + lane);
    }
#pragma unroll
    for (int e = 0; e < E; ++e) out[head + size_t(row) * D + e * 32 + lane] = __float2half(acc[e] / total);
}
