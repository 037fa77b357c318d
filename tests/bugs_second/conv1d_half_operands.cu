/* evoengine
name: conv1d_half_operands
precision: bf16
summary: steps and weights in half precision, sums in single precision
launches:
  - kernel: conv1d
    grid: ["ceil_div(L, 128)", C, B]
    block: [128]
    args: [x, weight, bias, out, C, L]
*/
#include <cuda_fp16.h>

constexpr int STEPS = 128, HALO = 3;

__global__ void conv1d(const float* x, const float* weight, const float* bias, float* out, int C, int L) {
    __shared__ half tile[STEPS + HALO];
    const int channel = blockIdx.y, start = blockIdx.x * STEPS;
    const size_t row = (size_t(blockIdx.z) * C + channel) * L;
    for (int i = threadIdx.x; i < STEPS + HALO; i += STEPS) {
        const int t = start + i - HALO;
        tile[i] = __float2half(t >= 0 && t < L ? x[row + t] : 0.0f);
    }
    __syncthreads();
    const int t = start + threadIdx.x;
    if (t >= L) return;
    float sum = bias[channel];
    for (int j = 0; j < 4; ++j) sum += __half2float(__float2half(weight[channel * 4 + j])) * __half2float(tile[threadIdx.x + j]);
    out[row + t] = sum / (1.0f + expf(-sum));
}
