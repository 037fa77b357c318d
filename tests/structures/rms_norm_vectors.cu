/* evoengine
name: rms_norm_vectors
precision: fp16
summary: a block a row, which stays in registers as vectors of eight halves
let:
  VECTORS: ceil_div(C, 2048)
launches:
  - kernel: normalise<VECTORS>
    grid: [N]
    block: [256]
    args: [x, weights, out, C]
*/
#include <cuda_fp16.h>

template <int VECTORS>
__global__ void __launch_bounds__(256)
normalise(const __half* __restrict__ x, const __half* __restrict__ weights, __half* __restrict__ out, int C) {
    __shared__ float of_warp[8];
    const int t = threadIdx.x;
    const int4* from = reinterpret_cast<const int4*>(x + size_t(blockIdx.x) * C);
    int4 kept[VECTORS];
    float sum = 0.0f;
#pragma unroll
    for (int i = 0; i < VECTORS; ++i) {
        const int at = i * 256 + t;
        kept[i] = at < C / 8 ? from[at] : make_int4(0, 0, 0, 0);
        const __half2* pairs = reinterpret_cast<const __half2*>(kept + i);
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            const float2 v = __half22float2(pairs[j]);
            sum += v.x * v.x + v.y * v.y;
        }
    }
#pragma unroll
    for (int step = 16; step; step /= 2) sum += __shfl_xor_sync(~0u, sum, step);
    if (t % 32 == 0) of_warp[t / 32] = sum;
    __syncthreads();
    sum = 0.0f;
#pragma unroll
    for (int i = 0; i < 8; ++i) sum += of_warp[i];
    const float factor = rsqrtf(sum / C + 1e-6f);
#pragma unroll
    for (int i = 0; i < VECTORS; ++i) {
        const int at = i * 256 + t;
        if (at >= C / 8) continue;
        const int4 by = reinterpret_cast<const int4*>(weights)[at];
        const __half2* pairs = reinterpret_cast<const __half2*>(kept + i);
        const __half2* factors = reinterpret_cast<const __half2*>(&by);
        int4 to;
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            const float2 v = __half22float2(pairs[j]), w = __half22float2(factors[j]);
            reinterpret_cast<__half2*>(&to)[j] = __floats2half2_rn(v.x * factor * w.x, v.y * factor * w.y);
        }
        reinterpret_cast<int4*>(out + size_t(blockIdx.x) * C)[at] = to;
    }
}
