/* evoengine
name: paged_attention_split
precision: fp16
summary: a block takes sixteen pages of one sequence and head of keys, half a warp a position for its four queries, the softmax as it goes; a second launch merges
let:
  PARTS: ceil_div(PAGES, 16)
scratch:
  tops: {dtype: float32, shape: [B * 8, PARTS]}
  sums: {dtype: float32, shape: [B * 8, PARTS]}
  values: {dtype: float32, shape: [B * 8, PARTS, 128]}
launches:
  - kernel: attend
    grid: [PARTS, B * 2]
    block: [128]
    args: [q, k, v, table, tops, sums, values, PAGES]
  - kernel: merge
    grid: [B * 8]
    block: [128]
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
attend(const __half* __restrict__ q, const __half* __restrict__ k, const __half* __restrict__ v, const int* __restrict__ table, float* __restrict__ tops, float* __restrict__ sums, float* __restrict__ values, int pages) {
    __shared__ float of_top[8][4], of_sum[8][4], of_value[8][4][128];
    const int t = threadIdx.x, part = t % 16, slot = t / 16, sequence = blockIdx.y / 2, group = blockIdx.y % 2;
    const int first = blockIdx.x * 16, last = min(first + 16, pages);
    float query[4][8], result[4][8] = {}, top[4], sum[4] = {};
#pragma unroll
    for (int h = 0; h < 4; ++h) {
        unpack(query[h], reinterpret_cast<const int4*>(q + (sequence * 8 + group * 4 + h) * 128)[part]);
        top[h] = -1e30f;
    }
    for (int page = first; page < last; ++page) {
        const size_t base = (size_t(table[sequence * pages + page]) * 2 + group) * 16;
#pragma unroll
        for (int i = 0; i < 2; ++i) {
            const size_t at = (base + i * 8 + slot) * 16 + part;
            float key[8], value[8];
            unpack(key, reinterpret_cast<const int4*>(k)[at]);
            unpack(value, reinterpret_cast<const int4*>(v)[at]);
#pragma unroll
            for (int h = 0; h < 4; ++h) {
                float score = 0.0f;
#pragma unroll
                for (int j = 0; j < 8; ++j) score += query[h][j] * key[j];
#pragma unroll
                for (int step = 8; step; step /= 2) score += __shfl_xor_sync(~0u, score, step);
                score *= 0.08838835f;
                const float most = fmaxf(top[h], score), factor = __expf(top[h] - most), weight = __expf(score - most);
                top[h] = most;
                sum[h] = sum[h] * factor + weight;
#pragma unroll
                for (int j = 0; j < 8; ++j) result[h][j] = result[h][j] * factor + weight * value[j];
            }
        }
    }
#pragma unroll
    for (int h = 0; h < 4; ++h) {
        if (part == 0) of_top[slot][h] = top[h], of_sum[slot][h] = sum[h];
#pragma unroll
        for (int j = 0; j < 8; ++j) of_value[slot][h][part * 8 + j] = result[h][j];
    }
    __syncthreads();
#pragma unroll
    for (int h = 0; h < 4; ++h) {
        float most = -1e30f, all = 0.0f, value = 0.0f;
#pragma unroll
        for (int i = 0; i < 8; ++i) most = fmaxf(most, of_top[i][h]);
#pragma unroll
        for (int i = 0; i < 8; ++i) {
            const float factor = __expf(of_top[i][h] - most);
            all += factor * of_sum[i][h];
            value += factor * of_value[i][h][t];
        }
        const int place = (sequence * 8 + group * 4 + h) * gridDim.x + blockIdx.x;
        values[size_t(place) * 128 + t] = value;
        if (t == 0) tops[place] = most, sums[place] = all;
    }
}

__global__ void __launch_bounds__(128)
merge(const float* __restrict__ tops, const float* __restrict__ sums, const float* __restrict__ values, __half* __restrict__ out, int parts) {
    const int head = blockIdx.x, t = threadIdx.x;
    float top = -1e30f, sum = 0.0f, value = 0.0f;
    for (int i = 0; i < parts; ++i) top = fmaxf(top, tops[head * parts + i]);
    for (int i = 0; i < parts; ++i) {
        const float weight = __expf(tops[head * parts + i] - top);
        sum += weight * sums[head * parts + i];
        value += weight * values[size_t(head * parts + i) * 128 + t];
    }
    out[head * 128 + t] = __float2half(value / sum);
}
