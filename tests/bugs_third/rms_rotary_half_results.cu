/* evoengine
name: rms_rotary_half_results
precision: fp16
summary: as rms_rotary_heads, with the turned pairs rounded to half precision
scratch:
  squares: {shape: [T, H], dtype: float32}
launches:
  - kernel: add_heads
    grid: ["ceil_div(H, 4)", T]
    block: [32, 4]
    args: [x, residual, summed, squares, H, D]
  - kernel: turn_heads
    grid: [H, "ceil_div(T, 4)"]
    block: ["D // 2", 4]
    args: [summed, squares, weight, cosines, sines, position, out, T, H, D, eps]
*/
#include <cuda_fp16.h>

__device__ float rounded(float x) { return __half2float(__float2half(x)); }

__global__ void add_heads(const float* x, const float* residual, float* summed, float* squares, int H, int D) {
    const int token = blockIdx.y, head = blockIdx.x * 4 + threadIdx.y;
    if (head >= H) return;
    const size_t base = (size_t(token) * H + head) * D;
    float sum = 0.0f;
    for (int d = threadIdx.x; d < D; d += 32) {
        const float value = x[base + d] + residual[base + d];
        summed[base + d] = value;
        sum += value * value;
    }
    for (int step = 16; step > 0; step /= 2) sum += __shfl_down_sync(~0u, sum, step);
    if (threadIdx.x == 0) squares[token * H + head] = sum;
}

__global__ void turn_heads(const float* summed, const float* squares, const float* weight, const float* cosines,
                           const float* sines, const int* position, float* out, int T, int H, int D, float eps) {
    const int head = blockIdx.x, token = blockIdx.y * 4 + threadIdx.y, pair = threadIdx.x;
    if (token >= T) return;
    float total = 0.0f;
    for (int h = 0; h < H; ++h) total += squares[token * H + h];
    const float inverse = rsqrtf(total / (H * D) + eps);
    const size_t at = (size_t(token) * H + head) * D + 2 * pair;
    const float first = rounded(summed[at] * inverse * weight[head * D + 2 * pair]);
    const float second = summed[at + 1] * inverse * weight[head * D + 2 * pair + 1];
    const int angle = position[token] * (D / 2) + pair;
    out[at] = rounded(first * cosines[angle] - second * sines[angle]);
    out[at + 1] = rounded(first * sines[angle] + second * cosines[angle]);
}
