/* evoengine
name: sdpa_e4m3_half_sums
precision: fp8
summary: K and V stored as e4m3 with a scale a head by a first launch; scores in half precision throughout, sums of P V in fp32
tunables:
  WARPS: [4, 8]
scratch:
  k8: {dtype: uint8, shape: ["B * H", S, D]}
  v8: {dtype: uint8, shape: ["B * H", S, D]}
  scales: {dtype: float32, shape: ["B * H", 2]}
launches:
  - kernel: quantise
    grid: ["B * H", 2]
    block: [256]
    args: [k, v, k8, v8, scales, "S * D"]
  - kernel: attention<D>
    grid: ["ceil_div(S, WARPS)", "B * H"]
    block: ["32 * WARPS"]
    args: [q, k8, v8, scales, out, S, scale, causal]
*/
#include <cuda_fp16.h>
#include <cuda_fp8.h>

__global__ void quantise(const __half* k, const __half* v, unsigned char* k8, unsigned char* v8, float* scales, int count) {
    __shared__ float largest[8];
    const __half* from = (blockIdx.y ? v : k) + size_t(blockIdx.x) * count;
    unsigned char* to = (blockIdx.y ? v8 : k8) + size_t(blockIdx.x) * count;
    float most = 0.0f;
    for (int i = threadIdx.x; i < count; i += 256) most = fmaxf(most, fabsf(__half2float(from[i])));
    for (int o = 16; o; o /= 2) most = fmaxf(most, __shfl_xor_sync(~0u, most, o));
    if (threadIdx.x % 32 == 0) largest[threadIdx.x / 32] = most;
    __syncthreads();
    most = largest[0];
    for (int w = 1; w < 8; ++w) most = fmaxf(most, largest[w]);
    const float scale = most > 0.0f ? most / 448.0f : 1.0f;   // 448: the largest e4m3 number; a head of zeros has scale 1
    for (int i = threadIdx.x; i < count; i += 256) to[i] = __nv_cvt_float_to_fp8(__half2float(from[i]) / scale, __NV_SATFINITE, __NV_E4M3);
    if (threadIdx.x == 0) scales[2 * blockIdx.x + blockIdx.y] = scale;
}

__device__ __forceinline__ __half2 decode(const unsigned char* p) {
    return __half2(__nv_cvt_fp8x2_to_halfraw2(*reinterpret_cast<const __nv_fp8x2_storage_t*>(p), __NV_E4M3));
}

template <int D>
__global__ void __launch_bounds__(32 * WARPS)
attention(const __half* __restrict__ q, const unsigned char* __restrict__ k8, const unsigned char* __restrict__ v8, const float* __restrict__ scales,
          __half* __restrict__ out, int S, float scale, bool causal) {
    constexpr int P = D / 64;
    const int lane = threadIdx.x % 32, row = blockIdx.x * WARPS + threadIdx.x / 32;
    if (row >= S) return;
    const size_t head = size_t(blockIdx.y) * S * D;
    const float k_scale = scales[2 * blockIdx.y], v_scale = scales[2 * blockIdx.y + 1];
    // The query carries the factors of the score and one of 1/64, so that sums of products stay far below 65504.
    const float factor = scale * k_scale;
    const float fit = factor > 0.0f ? exp2f(-ceilf(log2f(factor)) - 6.0f) : 1.0f;
    __half2 query[P];
    float2 acc[P];
#pragma unroll
    for (int i = 0; i < P; ++i) {
        const float2 x = __half22float2(reinterpret_cast<const __half2*>(q + head + size_t(row) * D)[i * 32 + lane]);
        query[i] = __floats2half2_rn(x.x * factor * fit, x.y * factor * fit);
        acc[i] = make_float2(0.0f, 0.0f);
    }
    float top = -INFINITY, total = 0.0f;
    for (int j = 0; j < (causal ? row + 1 : S); ++j) {
        __half2 s = __float2half2_rn(0.0f);
#pragma unroll
        for (int i = 0; i < P; ++i) s = __hfma2(query[i], decode(k8 + head + size_t(j) * D + (i * 32 + lane) * 2), s);
#pragma unroll
        for (int o = 16; o; o /= 2) s = __hadd2(s, __shfl_xor_sync(~0u, s, o));
        const float score = (__low2float(s) + __high2float(s)) / fit;
        const float next = fmaxf(top, score), keep = __expf(top - next), p = __expf(score - next);
        total = total * keep + p;
        top = next;
#pragma unroll
        for (int i = 0; i < P; ++i) {
            const float2 x = __half22float2(decode(v8 + head + size_t(j) * D + (i * 32 + lane) * 2));
            acc[i].x = acc[i].x * keep + p * x.x, acc[i].y = acc[i].y * keep + p * x.y;
        }
    }
#pragma unroll
    for (int i = 0; i < P; ++i)
        reinterpret_cast<__half2*>(out + head + size_t(row) * D)[i * 32 + lane] = __floats2half2_rn(acc[i].x * v_scale / total, acc[i].y * v_scale / total);
}
