/* evoengine
name: attention_three_launches
precision: fp16
summary: scores into global memory in tiles of 16 x 16, softmax of their rows, product with the values
scratch:
  weights: {shape: [B*H, S, S], dtype: float32}
launches:
  - kernel: scores<D, causal>
    grid: ["ceil_div(S, 16)", "ceil_div(S, 16)", "B*H"]
    block: [16, 16]
    args: [q, k, weights, S, scale]
  - kernel: normalise<causal>
    grid: ["ceil_div(S, 4)", "B*H"]
    block: [128]
    args: [weights, S]
  - kernel: weighted<D, causal>
    grid: ["D // 16", "ceil_div(S, 16)", "B*H"]
    block: [16, 16]
    args: [weights, v, out, S]
*/
#include <cuda_fp16.h>

constexpr int TILE = 16;

// weights[row][key] = scale * q[row] . k[key]; tiles that a causal mask hides are left out
template <int D, bool CAUSAL>
__global__ void scores(const half* q, const half* k, float* weights, int S, float scale) {
    __shared__ float query_tile[TILE][TILE + 1];
    __shared__ float key_tile[TILE][TILE + 1];
    if (CAUSAL && blockIdx.x > blockIdx.y) return;
    const int x = threadIdx.x, y = threadIdx.y;
    const int row = blockIdx.y * TILE + y, key = blockIdx.x * TILE + x;
    const int loaded_key = blockIdx.x * TILE + y;
    const size_t base = size_t(blockIdx.z) * S * D;
    float sum = 0.0f;
    for (int depth = 0; depth < D; depth += TILE) {
        query_tile[y][x] = row < S ? __half2float(q[base + size_t(row) * D + depth + x]) : 0.0f;
        key_tile[y][x] = loaded_key < S ? __half2float(k[base + size_t(loaded_key) * D + depth + x]) : 0.0f;
        __syncthreads();
        for (int d = 0; d < TILE; ++d) sum += query_tile[y][d] * key_tile[x][d];
        __syncthreads();
    }
    if (row < S && key < S) weights[(size_t(blockIdx.z) * S + row) * S + key] = sum * scale;
}

// A warp turns a row of scores into probabilities; hidden keys get 0.
template <bool CAUSAL>
__global__ void normalise(float* weights, int S) {
    const int row = blockIdx.x * 4 + threadIdx.x / 32, lane = threadIdx.x % 32;
    if (row >= S) return;
    float* line = weights + (size_t(blockIdx.y) * S + row) * S;
    const int seen = CAUSAL ? row + 1 : S;
    float top = __int_as_float(0xff800000);
    for (int i = lane; i < seen; i += 32) top = fmaxf(top, line[i]);
    for (int step = 16; step > 0; step >>= 1) top = fmaxf(top, __shfl_xor_sync(~0u, top, step));
    float total = 0.0f;
    for (int i = lane; i < seen; i += 32) total += expf(line[i] - top);
    for (int step = 16; step > 0; step >>= 1) total += __shfl_xor_sync(~0u, total, step);
    const float inverse = 1.0f / total;
    for (int i = lane; i < S; i += 32) line[i] = i < seen ? expf(line[i] - top) * inverse : 0.0f;
}

template <int D, bool CAUSAL>
__global__ void weighted(const float* weights, const half* v, half* out, int S) {
    __shared__ float weight_tile[TILE][TILE + 1];
    __shared__ float value_tile[TILE][TILE + 1];
    const int x = threadIdx.x, y = threadIdx.y;
    const int row = blockIdx.y * TILE + y, column = blockIdx.x * TILE + x;
    const int end = CAUSAL ? min(S, (int(blockIdx.y) + 1) * TILE) : S;
    float sum = 0.0f;
    for (int start = 0; start < end; start += TILE) {
        weight_tile[y][x] = row < S && start + x < S ? weights[(size_t(blockIdx.z) * S + row) * S + start + x] : 0.0f;
        value_tile[y][x] = start + y < S ? __half2float(v[(size_t(blockIdx.z) * S + start + y) * D + column]) : 0.0f;
        __syncthreads();
        for (int j = 0; j < TILE; ++j) sum += weight_tile[y][j] * value_tile[j][x];
        __syncthreads();
    }
    if (row < S) out[(size_t(blockIdx.z) * S + row) * D + column] = __float2half(sum);
}
