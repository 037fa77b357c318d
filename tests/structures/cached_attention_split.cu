/* evoengine
name: cached_attention_split
precision: fp16
summary: blocks that each take 256 positions of one query's cache, eight lanes a position, and a launch that merges their maxima, sums and values
let:
  PARTS: ceil_div(S, 256)
scratch:
  tops: {dtype: float32, shape: [B, PARTS]}
  sums: {dtype: float32, shape: [B, PARTS]}
  values: {dtype: float32, shape: [B, PARTS, 64]}
launches:
  - kernel: attend
    grid: [PARTS, B]
    block: [128]
    args: [q, k, v, tops, sums, values, S]
  - kernel: merge
    grid: [B]
    block: [64]
    args: [tops, sums, values, out, PARTS]
*/
#include <cuda_fp16.h>

__device__ __forceinline__ void unpack(float (&to)[8], const int4& from) {
#pragma unroll
    for (int j = 0; j < 4; ++j) {
        const float2 pair = __half22float2(reinterpret_cast<const __half2*>(&from)[j]);
        to[2 * j] = pair.x, to[2 * j + 1] = pair.y;
    }
}

__global__ void __launch_bounds__(128)
attend(const __half* __restrict__ q, const __half* __restrict__ k, const __half* __restrict__ v, float* __restrict__ tops, float* __restrict__ sums, float* __restrict__ values, int S) {
    __shared__ float scores[256], of_warp[2][4], partial[16][64];
    const int t = threadIdx.x, part = t % 8, slot = t / 8, first = blockIdx.x * 256, query = blockIdx.y;
    const int count = min(256, S - first);
    float own[8], other[8];
    unpack(own, reinterpret_cast<const int4*>(q + query * 64)[part]);
    float top = -1e30f;
    for (int i = slot; i < 256; i += 16) {
        float score = -1e30f;
        if (i < count) {
            unpack(other, reinterpret_cast<const int4*>(k + (size_t(query) * S + first + i) * 64)[part]);
            score = 0.0f;
#pragma unroll
            for (int j = 0; j < 8; ++j) score += own[j] * other[j];
        }
#pragma unroll
        for (int step = 4; step; step /= 2) score += __shfl_xor_sync(~0u, score, step);
        score *= 0.125f;
        if (part == 0) scores[i] = score;
        top = fmaxf(top, score);
    }
#pragma unroll
    for (int step = 16; step; step /= 2) top = fmaxf(top, __shfl_xor_sync(~0u, top, step));
    if (t % 32 == 0) of_warp[0][t / 32] = top;
    __syncthreads();
    top = fmaxf(fmaxf(of_warp[0][0], of_warp[0][1]), fmaxf(of_warp[0][2], of_warp[0][3]));
    float sum = 0.0f, result[8] = {};
    for (int i = slot; i < count; i += 16) {
        const float weight = __expf(scores[i] - top);
        unpack(other, reinterpret_cast<const int4*>(v + (size_t(query) * S + first + i) * 64)[part]);
#pragma unroll
        for (int j = 0; j < 8; ++j) result[j] += weight * other[j];
        if (part == 0) sum += weight;
    }
#pragma unroll
    for (int step = 16; step; step /= 2) sum += __shfl_xor_sync(~0u, sum, step);
    if (t % 32 == 0) of_warp[1][t / 32] = sum;
#pragma unroll
    for (int j = 0; j < 8; ++j) partial[slot][part * 8 + j] = result[j];
    __syncthreads();
    const int place = query * gridDim.x + blockIdx.x;
    if (t < 64) {
        float value = 0.0f;
#pragma unroll
        for (int i = 0; i < 16; ++i) value += partial[i][t];
        values[size_t(place) * 64 + t] = value;
    }
    if (t == 0) tops[place] = top, sums[place] = of_warp[1][0] + of_warp[1][1] + of_warp[1][2] + of_warp[1][3];
}

__global__ void __launch_bounds__(64)
merge(const float* __restrict__ tops, const float* __restrict__ sums, const float* __restrict__ values, __half* __restrict__ out, int parts) {
    const int query = blockIdx.x, t = threadIdx.x;
    float top = -1e30f, sum = 0.0f, value = 0.0f;
    for (int i = 0; i < parts; ++i) top = fmaxf(top, tops[query * parts + i]);
    for (int i = 0; i < parts; ++i) {
        const float weight = __expf(tops[query * parts + i] - top);
        sum += weight * sums[query * parts + i];
        value += weight * values[size_t(query * parts + i) * 64 + t];
    }
    out[query * 64 + t] = __float2half(value / sum);
}
