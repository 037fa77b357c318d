/* evoengine
name: moments_half_values
precision: fp16
summary: a warp has a column, from whose first element all are subtracted; the differences are rounded to half precision, their sums are not
launches:
  - kernel: measure
    grid: ["ceil_div(C, 4)"]
    block: [128]
    args: [x, mean, variance, N, C]
*/
#include <cuda_fp16.h>

__global__ void __launch_bounds__(128)
measure(const float* __restrict__ x, float* __restrict__ mean, float* __restrict__ variance, int N, int C) {
    const int column = blockIdx.x * 4 + threadIdx.x / 32, lane = threadIdx.x % 32;
    if (column >= C) return;
    const float pivot = x[column];
    float sum = 0.0f, squares = 0.0f;
    for (int row = lane; row < N; row += 32) {
        const float difference = __half2float(__float2half(x[size_t(row) * C + column] - pivot));
        sum += difference;
        squares = fmaf(difference, difference, squares);
    }
#pragma unroll
    for (int mask = 16; mask > 0; mask /= 2) {
        sum += __shfl_xor_sync(0xffffffffu, sum, mask);
        squares += __shfl_xor_sync(0xffffffffu, squares, mask);
    }
    if (lane > 0) return;
    const float offset = sum / N;
    mean[column] = pivot + offset;
    variance[column] = (squares - sum * offset) / (N - 1);
}
