/* evoengine
name: product_half_scales
precision: fp16
summary: a warp has a result and a lane a word of the codes; whole sums of eight lanes are multiplied with a scale that is rounded to half precision
launches:
  - kernel: multiply_codes
    grid: ["ceil_div(M * N, 4)"]
    block: [128]
    args: [a, b, a_scales, b_scales, out, M, N, K]
*/
#include <cuda_fp16.h>

__global__ void __launch_bounds__(128)
multiply_codes(const int* __restrict__ a, const int* __restrict__ b, const float* __restrict__ a_scales,
               const float* __restrict__ b_scales, float* __restrict__ out, int M, int N, int K) {
    const int at = blockIdx.x * 4 + threadIdx.x / 32, lane = threadIdx.x % 32, words = K / 4, groups = K / 32;
    if (at >= M * N) return;
    const int m = at / N, n = at % N;
    float sum = 0.0f;
    for (int start = 0; start < words; start += 32) {
        const int w = start + lane;
        int whole = w < words ? __dp4a(a[size_t(m) * words + w], b[size_t(n) * words + w], 0) : 0;
#pragma unroll
        for (int mask = 4; mask > 0; mask /= 2) whole += __shfl_xor_sync(0xffffffffu, whole, mask);
        if (lane % 8 == 0 && w < words) {
            const float scale = a_scales[m * groups + w / 8] * b_scales[n * groups + w / 8];
            sum = fmaf(float(whole), __half2float(__float2half(scale * 64.0f)), sum);
        }
    }
    sum += __shfl_xor_sync(0xffffffffu, sum, 16);
    sum += __shfl_xor_sync(0xffffffffu, sum, 8);
    if (lane == 0) out[at] = sum / 64.0f;
}
