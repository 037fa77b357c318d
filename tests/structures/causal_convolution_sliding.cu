/* evoengine
name: causal_convolution_sliding
precision: fp16
summary: a thread marches along time for two channels, the last three numbers of each in registers
tunables:
  STEPS: [32, 16, 64]
launches:
  - kernel: convolve
    grid: ["ceil_div(C, 128)", "ceil_div(T, STEPS)", B]
    block: [64]
    args: [x, filters, out, T, C]
*/
#include <cuda_fp16.h>

__global__ void __launch_bounds__(64)
convolve(const __half* __restrict__ x, const float* __restrict__ filters, __half* __restrict__ out, int T, int C) {
    const int channel = (blockIdx.x * 64 + threadIdx.x) * 2, first = blockIdx.y * STEPS;
    if (channel >= C) return;
    const __half* from = x + size_t(blockIdx.z) * T * C + channel;
    __half* to = out + size_t(blockIdx.z) * T * C + channel;
    const float4 f = reinterpret_cast<const float4*>(filters)[channel], g = reinterpret_cast<const float4*>(filters)[channel + 1];
    float2 before[3];
#pragma unroll
    for (int i = 0; i < 3; ++i) {
        const int t = first - 3 + i;
        before[i] = t >= 0 ? __half22float2(*reinterpret_cast<const __half2*>(from + size_t(t) * C)) : make_float2(0.0f, 0.0f);
    }
    for (int t = first; t < min(first + STEPS, T); ++t) {
        const float2 v = __half22float2(*reinterpret_cast<const __half2*>(from + size_t(t) * C));
        const float a = f.x * before[0].x + f.y * before[1].x + f.z * before[2].x + f.w * v.x;
        const float b = g.x * before[0].y + g.y * before[1].y + g.z * before[2].y + g.w * v.y;
        *reinterpret_cast<__half2*>(to + size_t(t) * C) = __floats2half2_rn(a / (1.0f + __expf(-a)), b / (1.0f + __expf(-b)));
        before[0] = before[1], before[1] = before[2], before[2] = v;
    }
}
