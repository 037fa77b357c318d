/* evoengine
name: glu_half_columns
precision: fp16
summary: a warp has a column of both halves; what it reads is rounded to half precision, and so are sigmoids
launches:
  - kernel: gradients
    grid: ["ceil_div(H, 4)"]
    block: [128]
    args: [x, grad, dx, dbias, N, H]
*/
#include <cuda_fp16.h>

__device__ __forceinline__ float rounded(float x) { return __half2float(__float2half(x)); }

__global__ void __launch_bounds__(128)
gradients(const float* __restrict__ x, const float* __restrict__ grad, float* __restrict__ dx, float* __restrict__ dbias,
          int N, int H) {
    const int column = blockIdx.x * 4 + threadIdx.x / 32, lane = threadIdx.x % 32;
    if (column >= H) return;
    float of_gates = 0.0f, of_ups = 0.0f;
    for (int row = lane; row < N; row += 32) {
        const size_t at = size_t(row) * 2 * H + column;
        const float gate = rounded(x[at]), up = rounded(x[at + H]), g = rounded(grad[size_t(row) * H + column]);
        const float sigmoid = rounded(1.0f / (1.0f + __expf(-gate)));
        const float of_gate = g * up * sigmoid * (1.0f + gate * (1.0f - sigmoid)), of_up = g * gate * sigmoid;
        dx[at] = of_gate;
        dx[at + H] = of_up;
        of_gates += of_gate;
        of_ups += of_up;
    }
    for (int step = 16; step > 0; step /= 2) {
        of_gates += __shfl_xor_sync(~0u, of_gates, step);
        of_ups += __shfl_xor_sync(~0u, of_ups, step);
    }
    if (lane == 0) {
        dbias[column] = of_gates;
        dbias[H + column] = of_ups;
    }
}
