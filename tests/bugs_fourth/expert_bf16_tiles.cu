/* evoengine
name: expert_bf16_tiles
precision: bf16
summary: pairs of row and expert are sorted by expert, tiles of 16 pairs x 32 columns multiplied in bfloat16, both results of a row added
scratch:
  order: {shape: [2*T], dtype: int32}
  starts: {shape: [E + 1], dtype: int32}
  results: {shape: [2*T, N], dtype: float32}
launches:
  - kernel: sort
    grid: [1]
    block: [128]
    shared: 8*E
    args: [experts, order, starts, "2*T", E]
  - kernel: multiply
    grid: ["ceil_div(N, 32)", "ceil_div(2*T, 16)", E]
    block: [32, 8]
    args: [x, weight, bias, order, starts, results, K, N]
  - kernel: add
    grid: ["ceil_div(N, 64)", T]
    block: [64]
    args: [results, gates, out, N]
*/
#include <cuda_bf16.h>

constexpr int ROWS = 16, COLUMNS = 32, DEPTH = 32;

__global__ void sort(const int* experts, int* order, int* starts, int pairs, int E) {
    extern __shared__ int counts[];
    int* next = counts + E;
    for (int e = threadIdx.x; e < E; e += blockDim.x) counts[e] = 0;
    __syncthreads();
    for (int i = threadIdx.x; i < pairs; i += blockDim.x) atomicAdd(&counts[experts[i]], 1);
    __syncthreads();
    if (threadIdx.x == 0) {
        int before = 0;
        for (int e = 0; e < E; ++e) {
            starts[e] = next[e] = before;
            before += counts[e];
        }
        starts[E] = before;
    }
    __syncthreads();
    for (int i = threadIdx.x; i < pairs; i += blockDim.x) order[atomicAdd(&next[experts[i]], 1)] = i;
}

__global__ void multiply(const float* x, const float* weight, const float* bias, const int* order, const int* starts,
                         float* results, int K, int N) {
    __shared__ __nv_bfloat16 rows[ROWS][DEPTH + 1];
    __shared__ __nv_bfloat16 matrix[DEPTH][COLUMNS];
    __shared__ int members[ROWS];
    const int expert = blockIdx.z, begin = starts[expert] + blockIdx.y * ROWS, end = starts[expert + 1];
    if (begin >= end) return;
    const int tx = threadIdx.x, ty = threadIdx.y, thread = ty * 32 + tx;
    const int column = blockIdx.x * COLUMNS + tx;
    if (thread < ROWS) members[thread] = begin + thread < end ? order[begin + thread] : -1;
    __syncthreads();
    float sums[2] = {};
    for (int depth = 0; depth < K; depth += DEPTH) {
        for (int r = ty; r < ROWS; r += 8) {
            const bool inside = members[r] >= 0 && depth + tx < K;
            rows[r][tx] = __float2bfloat16(inside ? x[size_t(members[r] / 2) * K + depth + tx] : 0.0f);
        }
        for (int d = ty; d < DEPTH; d += 8) {
            const bool inside = depth + d < K && column < N;
            matrix[d][tx] = __float2bfloat16(inside ? weight[(size_t(expert) * K + depth + d) * N + column] : 0.0f);
        }
        __syncthreads();
        for (int d = 0; d < DEPTH; ++d)
            for (int i = 0; i < 2; ++i) sums[i] += __bfloat162float(rows[ty + 8 * i][d]) * __bfloat162float(matrix[d][tx]);
        __syncthreads();
    }
    if (column >= N) return;
    const float offset = bias[size_t(expert) * N + column];
    for (int i = 0; i < 2; ++i) {
        const int member = members[ty + 8 * i];
        if (member >= 0) results[size_t(member) * N + column] = sums[i] + offset;
    }
}

__global__ void add(const float* results, const float* gates, float* out, int N) {
    const int row = blockIdx.y, column = blockIdx.x * 64 + threadIdx.x;
    if (column >= N) return;
    const float first = results[size_t(2 * row) * N + column], second = results[size_t(2 * row + 1) * N + column];
    out[size_t(row) * N + column] = gates[2 * row] * first + gates[2 * row + 1] * second;
}
