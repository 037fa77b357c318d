/* evoengine
name: prefix_half_tiles
precision: fp16
summary: a thread has a query, tiles of 16 keys and values lie in shared memory in half precision
launches:
  - kernel: attend
    grid: ["ceil_div(S, 32)", "B * H"]
    block: [32]
    args: [q, k, v, out, S, T, scale]
*/
#include <cuda_fp16.h>

constexpr int D = 32, KEYS = 16;

__global__ void attend(const float* q, const float* k, const float* v, float* out, int S, int T, float scale) {
    __shared__ __half key_tile[KEYS][D];
    __shared__ __half value_tile[KEYS][D];
    const int row = blockIdx.x * 32 + threadIdx.x;
    const size_t plane = blockIdx.y;
    float query[D], sum[D];
    for (int d = 0; d < D; ++d) query[d] = row < S ? q[(plane * S + row) * D + d] * scale : 0.0f;
    for (int d = 0; d < D; ++d) sum[d] = 0.0f;
    const int last = T - S + row;
    float top = -1e30f, total = 0.0f;
    for (int start = 0; start < T; start += KEYS) {
        __syncthreads();
        for (int i = threadIdx.x; i < KEYS * D; i += 32) {
            const int key = start + i / D;
            key_tile[i / D][i % D] = __float2half(key < T ? k[(plane * T + key) * D + i % D] : 0.0f);
            value_tile[i / D][i % D] = __float2half(key < T ? v[(plane * T + key) * D + i % D] : 0.0f);
        }
        __syncthreads();
        for (int j = 0; j < KEYS; ++j) {
            if (start + j > last || start + j >= T) continue;
            float score = 0.0f;
            for (int d = 0; d < D; ++d) score += query[d] * __half2float(key_tile[j][d]);
            const float high = fmaxf(top, score);
            const float shrink = expf(top - high), weight = expf(score - high);
            total = total * shrink + weight;
            for (int d = 0; d < D; ++d) sum[d] = sum[d] * shrink + weight * __half2float(value_tile[j][d]);
            top = high;
        }
    }
    if (row < S)
        for (int d = 0; d < D; ++d) out[(plane * S + row) * D + d] = sum[d] / total;
}
