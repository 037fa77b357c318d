/* evoengine
name: nf4_half_products
precision: fp16
summary: a warp has a row; the numbers of the codebook are rounded to half precision with their scale, and so is the vector; sums are in single precision
launches:
  - kernel: multiply_rows
    grid: ["ceil_div(M, 4)"]
    block: [128]
    args: [x, codes, scales, book, out, M, K]
*/
#include <cuda_fp16.h>

__global__ void __launch_bounds__(128)
multiply_rows(const float* __restrict__ x, const unsigned char* __restrict__ codes, const float* __restrict__ scales,
              const float* __restrict__ book, float* __restrict__ out, int M, int K) {
    const int row = blockIdx.x * 4 + threadIdx.x / 32, lane = threadIdx.x % 32;
    if (row >= M) return;
    const float number = book[lane % 16];   // a lane keeps one, twice in the warp
    float sum = 0.0f;
    for (int group = 0; group < K / 64; ++group) {
        const float scaled = __half2float(__float2half(number * scales[size_t(row) * (K / 64) + group]));
        const unsigned byte = codes[size_t(row) * (K / 2) + group * 32 + lane];
        const float2 pair = reinterpret_cast<const float2*>(x)[group * 32 + lane];
        const float upper = __shfl_sync(0xffffffffu, scaled, byte >> 4), lower = __shfl_sync(0xffffffffu, scaled, byte & 15u);
        sum = fmaf(upper, __half2float(__float2half(pair.x)), sum);
        sum = fmaf(lower, __half2float(__float2half(pair.y)), sum);
    }
#pragma unroll
    for (int mask = 16; mask > 0; mask /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, mask);
    if (lane == 0) out[row] = sum;
}
