/* evoengine
name: norm_codes_half_products
precision: fp16
summary: a block a row; the normalised row times its weight is rounded to half, and codes and step are taken from that
launches:
  - kernel: norm_codes
    grid: [N]
    block: [64]
    shared: 2 * C
    args: [x, weight, codes, steps, C, eps]
*/
#include <cuda_fp16.h>

__global__ void __launch_bounds__(64)
norm_codes(const float* __restrict__ x, const float* __restrict__ weight, signed char* __restrict__ codes,
           float* __restrict__ steps, int C, float eps) {
    extern __shared__ __half kept[];
    __shared__ float slots[2][2];
    const size_t begin = size_t(blockIdx.x) * C;
    float squares = 0.0f, peak = 0.0f;
    for (int i = threadIdx.x; i < C; i += 64) squares = fmaf(x[begin + i], x[begin + i], squares);
    for (int mask = 16; mask > 0; mask /= 2) squares += __shfl_xor_sync(0xffffffffu, squares, mask);
    if (threadIdx.x % 32 == 0) slots[0][threadIdx.x / 32] = squares;
    __syncthreads();
    const float scale = rsqrtf((slots[0][0] + slots[0][1]) / C + eps);
    for (int i = threadIdx.x; i < C; i += 64) {
        kept[i] = __float2half(x[begin + i] * scale * weight[i]);
        peak = fmaxf(peak, fabsf(__half2float(kept[i])));
    }
    for (int mask = 16; mask > 0; mask /= 2) peak = fmaxf(peak, __shfl_xor_sync(0xffffffffu, peak, mask));
    if (threadIdx.x % 32 == 0) slots[1][threadIdx.x / 32] = peak;
    __syncthreads();
    const float step = fmaxf(slots[1][0], slots[1][1]) / 127.0f;
    if (threadIdx.x == 0) steps[blockIdx.x] = step;
    for (int i = threadIdx.x; i < C; i += 64)
        codes[begin + i] = static_cast<signed char>(
            max(-127, min(127, __float2int_rn(__half2float(kept[i]) / step))));
}
