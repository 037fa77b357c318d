/* evoengine
name: norm_half_results
precision: fp16
summary: a warp has a row; moments by lane are merged pairwise, results rounded to half precision
launches:
  - kernel: normalise
    grid: ["ceil_div(N, 4)"]
    block: [128]
    args: [x, residual, weight, bias, out, total, N, D, eps]
*/
#include <cuda_fp16.h>

__global__ void normalise(const float* x, const float* residual, const float* weight, const float* bias, float* out,
                     float* total, int N, int D, float eps) {
    const int lane = threadIdx.x % 32, row = blockIdx.x * 4 + threadIdx.x / 32;
    if (row >= N) return;
    const size_t begin = size_t(row) * D;
    float count = 0.0f, mean = 0.0f, squares = 0.0f;
    for (int i = lane; i < D; i += 32) {
        const float value = x[begin + i] + residual[begin + i];
        total[begin + i] = value;
        count += 1.0f;
        const float delta = value - mean;
        mean += delta / count;
        squares += delta * (value - mean);
    }
    for (int step = 16; step > 0; step /= 2) {
        const float n = __shfl_xor_sync(~0u, count, step), m = __shfl_xor_sync(~0u, mean, step);
        const float s = __shfl_xor_sync(~0u, squares, step);
        const float delta = m - mean, all = count + n;
        squares += s + delta * delta * count * n / all;
        mean = (mean * count + m * n) / all;
        count = all;
    }
    const float inverse = rsqrtf(squares / count + eps);
    for (int i = lane; i < D; i += 32) {
        const float value = total[begin + i];
        out[begin + i] = __half2float(__float2half((value - mean) * inverse * weight[i] + bias[i]));
    }
}
