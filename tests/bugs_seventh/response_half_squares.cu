/* evoengine
name: response_half_squares
precision: fp16
summary: a block has 32 pixels of an image and all their channels in shared memory; values are rounded to half precision before they are squared
launches:
  - kernel: normalise
    grid: ["ceil_div(P, 32)", N]
    block: [128]
    shared: 4 * 32 * (C + 4)
    args: [x, out, C, P, alpha, bias]
*/
#include <cuda_fp16.h>

__global__ void __launch_bounds__(128)
normalise(const float* __restrict__ x, float* __restrict__ out, int C, int P, float alpha, float bias) {
    extern __shared__ float squares[];   // [channel + 2][pixel], with two rows of zeros on either side
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, pixel = blockIdx.x * 32 + lane;
    const size_t base = size_t(blockIdx.y) * C * P + pixel;
    for (int c = warp - 2; c < C + 2; c += 4) {
        float value = 0.0f;
        if (c >= 0 && c < C && pixel < P) value = __half2float(__float2half(x[base + size_t(c) * P]));
        squares[(c + 2) * 32 + lane] = value * value;
    }
    __syncthreads();
    if (pixel >= P) return;
    for (int c = warp; c < C; c += 4) {
        float sum = 0.0f;
        for (int j = 0; j < 5; ++j) sum += squares[(c + j) * 32 + lane];
        out[base + size_t(c) * P] = x[base + size_t(c) * P] * __powf(bias + alpha * 0.2f * sum, -0.75f);
    }
}
