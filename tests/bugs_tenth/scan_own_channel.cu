/* evoengine
name: scan_own_channel
precision: fp16
summary: a thread has a channel and its whole state; inputs, steps and what is read are rounded to half precision
launches:
  - kernel: scan_channel<S>
    grid: ["ceil_div(C, 32)", B]
    block: [32]
    args: [x, delta, z, a_log, b, c, skip, shift, out, last, T, C]
*/
#include <cuda_fp16.h>

__device__ __forceinline__ float rounded(float v) { return __half2float(__float2half(v)); }

template <int S>
__global__ void scan_channel(const float* x, const float* delta, const float* z, const float* a_log, const float* b, const float* c,
                             const float* skip, const float* shift, float* out, float* last, int T, int C) {
    const int channel = blockIdx.x * 32 + threadIdx.x;
    if (channel >= C) return;
    float state[S] = {}, rate[S];
    for (int n = 0; n < S; ++n) rate[n] = __expf(a_log[channel * S + n]);
    for (int t = 0; t < T; ++t) {
        const size_t token = (size_t)blockIdx.y * T + t, at = token * C + channel;
        const float sum = delta[at] + shift[channel];
        const float step = rounded(fmaxf(sum, 0.0f) + __logf(1.0f + __expf(-fabsf(sum))));
        const float input = rounded(x[at]), sigmoid = 1.0f / (1.0f + __expf(-z[at]));
        float even = 0.0f, odd = 0.0f;
        for (int n = 0; n < S; ++n) {
            state[n] = __expf(-step * rate[n]) * state[n] + step * input * rounded(b[token * S + n]);
            (n % 2 ? odd : even) += state[n] * rounded(c[token * S + n]);
        }
        out[at] = (rounded(even + odd) + skip[channel] * input) * z[at] * sigmoid;
    }
    for (int n = 0; n < S; ++n) last[((size_t)blockIdx.y * C + channel) * S + n] = state[n];
}
