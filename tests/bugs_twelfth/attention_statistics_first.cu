/* evoengine
name: attention_statistics_first
precision: fp16
summary: one launch finds the maximum and the sum of every row of scores, a second one computes the scores again and sums the values
scratch:
  highest: {dtype: float32, shape: [B, H, S]}
  sums: {dtype: float32, shape: [B, H, S]}
launches:
  - kernel: statistics<D, causal>
    grid: ["ceil_div(S, 32)", H, B]
    block: [256]
    args: [q, k, highest, sums, S, scale]
  - kernel: weigh<D, causal>
    grid: ["ceil_div(S, 32)", H, B]
    block: [256]
    args: [q, k, v, highest, sums, out, S, scale]
*/
#include <cuda_fp16.h>

constexpr int TILE = 32;

// Thirty-two rows of a head as floats, zeros behind its end.
template <int D>
__device__ __forceinline__ void stage(float (*to)[D + 1], const half* head, int first, int S) {
    for (int i = threadIdx.x; i < TILE * D; i += 256) {
        const int r = i / D, c = i % D;
        to[r][c] = first + r < S ? __half2float(head[size_t(first + r) * D + c]) : 0.0f;
    }
}

template <int D>
__device__ __forceinline__ float dot(const float* x, const float* y) {
    float sum = 0.0f;
#pragma unroll 16
    for (int d = 0; d < D; ++d) sum = fmaf(x[d], y[d], sum);
    return sum;
}

// Eight neighbouring lanes share a query; each has every eighth key of a tile.
template <int D, bool CAUSAL>
__global__ void __launch_bounds__(256)
statistics(const half* __restrict__ q, const half* __restrict__ k, float* __restrict__ highest, float* __restrict__ sums, int S, float scale) {
    __shared__ float sq[TILE][D + 1];
    __shared__ float sk[8][D + 1];
    const int r = threadIdx.x / 8, lane = threadIdx.x % 8;
    const int query = blockIdx.x * TILE + r;
    const size_t slice = size_t(blockIdx.z) * gridDim.y + blockIdx.y;
    stage<D>(sq, q + slice * S * D, blockIdx.x * TILE, S);
    const int limit = CAUSAL ? min(S, query + 1) : S;
    const int end = CAUSAL ? min(S, int(blockIdx.x + 1) * TILE) : S;
    float top = -INFINITY, total = 0.0f;
    for (int begin = 0; begin < end; begin += 8) {
        __syncthreads();
        for (int i = threadIdx.x; i < 8 * D; i += 256) {
            const int key = begin + i / D;
            sk[i / D][i % D] = key < S ? __half2float(k[(slice * S + key) * D + i % D]) : 0.0f;
        }
        __syncthreads();
        if (begin + lane < limit) {
            const float score = dot<D>(sq[r], sk[lane]) * scale;
            const float high = fmaxf(top, score);
            total = total * expf(top - high) + expf(score - high);
            top = high;
        }
    }
    // lanes that saw no key have a sum of zero
    float high = top;
    for (int step = 4; step > 0; step /= 2) high = fmaxf(high, __shfl_xor_sync(0xffffffffu, high, step));
    total = top == -INFINITY ? 0.0f : total * expf(top - high);
    for (int step = 4; step > 0; step /= 2) total += __shfl_xor_sync(0xffffffffu, total, step);
    if (lane == 0 && query < S) {
        highest[slice * S + query] = high;
        sums[slice * S + query] = total;
    }
}

template <int D, bool CAUSAL>
__global__ void __launch_bounds__(256)
weigh(const half* __restrict__ q, const half* __restrict__ k, const half* __restrict__ v, const float* __restrict__ highest,
      const float* __restrict__ sums, half* __restrict__ out, int S, float scale) {
    __shared__ float sq[TILE][D + 1];
    __shared__ float weight[TILE][8];
    const int r = threadIdx.x / 8, lane = threadIdx.x % 8;
    const int query = blockIdx.x * TILE + r;
    const size_t slice = size_t(blockIdx.z) * gridDim.y + blockIdx.y;
    stage<D>(sq, q + slice * S * D, blockIdx.x * TILE, S);
    __syncthreads();
    const float top = query < S ? highest[slice * S + query] : 0.0f;
    const float total = query < S ? sums[slice * S + query] : 1.0f;
    const half* values = v + slice * S * D;
    const int end = CAUSAL ? min(S, int(blockIdx.x + 1) * TILE) : S;
    float result[D / 8] = {};
    for (int begin = 0; begin < end; begin += 8) {
        const int key = begin + lane;
        float p = 0.0f;
        if (key < S && query < S && (!CAUSAL || key <= query)) {
            float score = 0.0f;
            for (int d = 0; d < D; ++d) score = fmaf(sq[r][d], __half2float(k[(slice * S + key) * D + d]), score);
            p = expf(score * scale - top);
        }
        weight[r][lane] = p;
        __syncwarp();   // the eight lanes of a query are of one warp
        for (int n = 0; n < 8 && begin + n < S; ++n) {
            const half* value = values + size_t(begin + n) * D;
#pragma unroll
            for (int c = 0; c < D / 8; ++c) result[c] += weight[r][n] * __half2float(value[c * 8 + lane]);
        }
        __syncwarp();
    }
    if (query >= S) return;
    for (int c = 0; c < D / 8; ++c)
        out[(slice * S + query) * D + c * 8 + lane] = __float2half(result[c] / total);
}
