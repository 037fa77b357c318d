/* evoengine
name: sdpa_scores_in_memory
precision: fp16
summary: three launches - all scores to scratch, softmax of its rows in place, product with V
scratch:
  scores: {dtype: float32, shape: [B, H, S, S]}
launches:
  - kernel: all_scores
    grid: ["ceil_div(S, 32)", "ceil_div(S, 32)", "B * H"]
    block: [32, 8]
    args: [q, k, scores, S, D, scale, causal]
  - kernel: softmax_rows
    grid: ["B * H * S"]
    block: [128]
    args: [scores, S]
  - kernel: times_values
    grid: ["ceil_div(D, 32)", "ceil_div(S, 32)", "B * H"]
    block: [32, 8]
    args: [scores, v, out, S, D]
*/
#include <cuda_fp16.h>

__global__ void all_scores(const __half* __restrict__ q, const __half* __restrict__ k, float* __restrict__ scores, int S, int D, float scale, bool causal) {
    __shared__ float queries[32][33], keys[32][33];
    const size_t head = (size_t)blockIdx.z * S * D;
    const int i0 = blockIdx.y * 32, j0 = blockIdx.x * 32;
    float sums[4] = {0, 0, 0, 0};
    for (int d0 = 0; d0 < D; d0 += 32) {
        for (int y = threadIdx.y; y < 32; y += 8) {
            const int d = d0 + threadIdx.x;
            queries[y][threadIdx.x] = i0 + y < S ? __half2float(q[head + (size_t)(i0 + y) * D + d]) : 0.0f;
            keys[y][threadIdx.x] = j0 + y < S ? __half2float(k[head + (size_t)(j0 + y) * D + d]) : 0.0f;
        }
        __syncthreads();
        for (int d = 0; d < 32; d++)
            for (int r = 0; r < 4; r++) sums[r] += queries[threadIdx.y + 8 * r][d] * keys[threadIdx.x][d];
        __syncthreads();
    }
    const int j = j0 + threadIdx.x;
    for (int r = 0; r < 4; r++) {
        const int i = i0 + threadIdx.y + 8 * r;
        if (i < S && j < S) scores[((size_t)blockIdx.z * S + i) * S + j] = causal && j > i ? -INFINITY : sums[r] * scale;
    }
}

template <class Op> __device__ float over_block(float v, Op op) {
    __shared__ float table[4];
    for (int o = 16; o; o >>= 1) v = op(v, __shfl_xor_sync(~0u, v, o));
    __syncthreads();
    if (threadIdx.x % 32 == 0) table[threadIdx.x / 32] = v;
    __syncthreads();
    return op(op(table[0], table[1]), op(table[2], table[3]));
}

__global__ void softmax_rows(float* scores, int S) {
    float* row = scores + (size_t)blockIdx.x * S;
    float top = -INFINITY, total = 0.0f;
    for (int j = threadIdx.x; j < S; j += 128) top = fmaxf(top, row[j]);
    top = over_block(top, [](float a, float b) { return fmaxf(a, b); });
    for (int j = threadIdx.x; j < S; j += 128) total += row[j] = expf(row[j] - top);
    total = over_block(total, [](float a, float b) { return a + b; });
    for (int j = threadIdx.x; j < S; j += 128) row[j] /= total;
}

__global__ void times_values(const float* __restrict__ weights, const __half* __restrict__ v, __half* __restrict__ out, int S, int D) {
    __shared__ float w[32][33], x[32][33];
    const int d = blockIdx.x * 32 + threadIdx.x, i0 = blockIdx.y * 32;
    const size_t head = (size_t)blockIdx.z * S * D;
    float sums[4] = {0, 0, 0, 0};
    for (int j0 = 0; j0 < S; j0 += 32) {
        for (int y = threadIdx.y; y < 32; y += 8) {
            const int j = j0 + threadIdx.x;
            w[y][threadIdx.x] = i0 + y < S && j < S ? weights[((size_t)blockIdx.z * S + i0 + y) * S + j] : 0.0f;
            x[y][threadIdx.x] = j0 + y < S ? __half2float(v[head + (size_t)(j0 + y) * D + d]) : 0.0f;
        }
        __syncthreads();
        for (int j = 0; j < 32; j++)
            for (int r = 0; r < 4; r++) sums[r] += w[threadIdx.y + 8 * r][j] * x[j][threadIdx.x];
        __syncthreads();
    }
    for (int r = 0; r < 4; r++) {
        const int i = i0 + threadIdx.y + 8 * r;
        if (i < S) out[head + (size_t)i * D + d] = __float2half(sums[r]);
    }
}
