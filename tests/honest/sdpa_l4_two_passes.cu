/* evoengine
name: sdpa_l4_two_passes
precision: fp16
summary: keys are read twice - once for the row's maximum and total, once for the weighted sum of V; a half-warp a query
tunables:
  QUERIES: [8, 16]
launches:
  - kernel: attention<D>
    grid: ["ceil_div(S, QUERIES)", "B * H"]
    block: [16, QUERIES]
    args: [q, k, v, out, S, scale, causal]
*/
#include <cuda_fp16.h>

template <int D>
__device__ __forceinline__ float dot(const float (&x)[D / 16], const __half* row, unsigned mask) {
    union { uint4 wide[D / 128 ? D / 128 : 1]; uint2 narrow; __half2 pairs[D / 32]; } y;
    if (D == 128) y.wide[0] = *reinterpret_cast<const uint4*>(row);
    else y.narrow = *reinterpret_cast<const uint2*>(row);
    float s = 0.0f;
#pragma unroll
    for (int i = 0; i < D / 32; ++i) {
        const float2 p = __half22float2(y.pairs[i]);
        s = fmaf(x[2 * i], p.x, s);
        s = fmaf(x[2 * i + 1], p.y, s);
    }
#pragma unroll
    for (int o = 8; o; o >>= 1) s += __shfl_xor_sync(mask, s, o, 16);
    return s;
}

template <int D>
__global__ void __launch_bounds__(16 * QUERIES)
attention(const __half* __restrict__ q, const __half* __restrict__ k, const __half* __restrict__ v, __half* __restrict__ out, int S, float scale, bool causal) {
    const int row = blockIdx.x * QUERIES + threadIdx.y;
    const unsigned mask = threadIdx.y % 2 ? 0xffff0000u : 0x0000ffffu;   // the two halves of a warp have queries of their own
    if (row >= S) return;
    const size_t at = size_t(blockIdx.y) * S * D + threadIdx.x * (D / 16);
    const int keys = causal ? row + 1 : S;
    float x[D / 16], acc[D / 16];
#pragma unroll
    for (int i = 0; i < D / 16; ++i) x[i] = __half2float(q[at + size_t(row) * D + i]) * scale, acc[i] = 0.0f;

    float top = -INFINITY, total = 0.0f;
    for (int j = 0; j < keys; ++j) {
        const float s = dot<D>(x, k + at + size_t(j) * D, mask);
        if (s > top) total *= expf(top - s), top = s;
        total += expf(s - top);
    }
    const float log_sum = top + logf(total);
    for (int j = 0; j < keys; ++j) {
        const float p = expf(dot<D>(x, k + at + size_t(j) * D, mask) - log_sum);
        const __half* value = v + at + size_t(j) * D;
#pragma unroll
        for (int i = 0; i < D / 16; ++i) acc[i] += p * __half2float(value[i]);
    }
#pragma unroll
    for (int i = 0; i < D / 16; ++i) out[at + size_t(row) * D + i] = __float2half(acc[i]);
}
