/* evoengine
name: gqa_bf16_values
precision: bf16
summary: weights and values are rounded to bfloat16, sums are in single precision
launches:
  - kernel: gqa
    grid: ["ceil_div(S, 8)", HQ, B]
    block: [256]
    args: [q, k, v, out, HQ, HKV, S, scale]
*/
#include <cuda_bf16.h>
#include <cuda_fp16.h>

constexpr int D = 64, ROWS = 8, KEYS = 32, PITCH = D + 2;

__device__ float minus_infinity() { return __int_as_float(0xff800000); }

__device__ float warp_max(float x) {
    for (int step = 16; step > 0; step /= 2) x = fmaxf(x, __shfl_xor_sync(~0u, x, step));
    return x;
}

__device__ float warp_sum(float x) {
    for (int step = 16; step > 0; step /= 2) x += __shfl_xor_sync(~0u, x, step);
    return x;
}

__global__ void gqa(const half* q, const half* k, const half* v, half* out, int HQ, int HKV, int S, float scale) {
    __shared__ half key_tile[KEYS * PITCH];
    __shared__ __nv_bfloat16 value_tile[KEYS * PITCH];
    __shared__ float query_tile[ROWS * D];
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int head = blockIdx.y, kv_head = head / (HQ / HKV);
    const int row = blockIdx.x * ROWS + warp;
    const size_t q_base = (size_t(blockIdx.z) * HQ + head) * S * D;
    const half* keys = k + (size_t(blockIdx.z) * HKV + kv_head) * S * D;
    const half* values = v + (size_t(blockIdx.z) * HKV + kv_head) * S * D;

    for (int d = lane; d < D; d += 32)
        query_tile[warp * D + d] = row < S ? __half2float(q[q_base + size_t(row) * D + d]) * scale : 0.0f;

    float top = minus_infinity(), total = 0.0f, sum0 = 0.0f, sum1 = 0.0f;
    const int end = min(S, (int(blockIdx.x) + 1) * ROWS);  // no row of the block sees a later key
    const int tiles = (end + KEYS - 1) / KEYS;
    for (int t = 0; t < tiles; ++t) {
        const int start = t * KEYS;
        __syncthreads();  // the tile before has been read
        for (int i = threadIdx.x; i < KEYS * D; i += ROWS * 32) {
            const int r = i / D, c = i % D;
            const bool inside = start + r < S;
            key_tile[r * PITCH + c] = inside ? keys[size_t(start + r) * D + c] : __float2half(0.0f);
            value_tile[r * PITCH + c] = __float2bfloat16(inside ? __half2float(values[size_t(start + r) * D + c]) : 0.0f);
        }
        __syncthreads();
        float score = 0.0f;
        for (int d = 0; d < D; ++d) score += query_tile[warp * D + d] * __half2float(key_tile[lane * PITCH + d]);
        const int key = start + lane;
        score = key < S && key <= row ? score : minus_infinity();
        const float new_top = fmaxf(top, warp_max(score));
        const float rescale = expf(top - new_top);
        const float weight = __bfloat162float(__float2bfloat16(expf(score - new_top)));
        top = new_top;
        total = total * rescale + warp_sum(weight);
        sum0 *= rescale;
        sum1 *= rescale;
        for (int n = 0; n < KEYS; ++n) {
            const float w = __shfl_sync(~0u, weight, n);
            sum0 += w * __bfloat162float(value_tile[n * PITCH + lane]);
            sum1 += w * __bfloat162float(value_tile[n * PITCH + lane + 32]);
        }
    }
    if (row < S) {
        out[q_base + size_t(row) * D + lane] = __float2half(sum0 / total);
        out[q_base + size_t(row) * D + lane + 32] = __float2half(sum1 / total);
    }
}
