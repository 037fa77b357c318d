/* evoengine
name: batchnorm_half_values
precision: fp16
summary: a warp has a channel, whose normalised values are rounded to half precision; statistics are in single precision
launches:
  - kernel: batch_norm
    grid: [C]
    block: [32]
    args: [x, weight, bias, running_mean, running_var, out, N, C, L, momentum, eps]
*/
#include <cuda_fp16.h>

__device__ __forceinline__ float warp_sum(float value) {
    for (int step = 1; step < 32; step *= 2) value += __shfl_xor_sync(~0u, value, step);
    return value;
}

__global__ void batch_norm(const float* x, const float* weight, const float* bias, float* running_mean, float* running_var,
                           float* out, int N, int C, int L, float momentum, float eps) {
    const int channel = blockIdx.x;
    float sum = 0.0f, squares = 0.0f;
    for (int n = 0; n < N; ++n)
        for (int i = threadIdx.x; i < L; i += 32) sum += x[(size_t(n) * C + channel) * L + i];
    const float mean = warp_sum(sum) / (N * L);
    for (int n = 0; n < N; ++n)
        for (int i = threadIdx.x; i < L; i += 32) {
            const float distance = x[(size_t(n) * C + channel) * L + i] - mean;
            squares += distance * distance;
        }
    const float deviation = warp_sum(squares), inverse = rsqrtf(deviation / (N * L) + eps);
    for (int n = 0; n < N; ++n)
        for (int i = threadIdx.x; i < L; i += 32) {
            const size_t at = (size_t(n) * C + channel) * L + i;
            const float value = __half2float(__float2half((x[at] - mean) * inverse));
            out[at] = value * weight[channel] + bias[channel];
        }
    if (threadIdx.x != 0) return;
    running_mean[channel] += momentum * (mean - running_mean[channel]);
    running_var[channel] += momentum * (deviation / (N * L - 1) - running_var[channel]);
}
