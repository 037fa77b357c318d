/* evoengine
name: four_bit_product_warp_rows
precision: fp32
summary: a warp a row; 32 codes of four bits at a time become floats by shifts and masks, one scale for two loads of 16 bytes
launches:
  - kernel: multiply
    grid: ["ceil_div(N, 8)"]
    block: [256]
    args: [codes, scales, x, out, N, K]
*/
#include <cuda_fp16.h>

__global__ void __launch_bounds__(256)
multiply(const unsigned char* __restrict__ codes, const __half* __restrict__ scales, const float* __restrict__ x, float* __restrict__ out, int N, int K) {
    const int row = blockIdx.x * 8 + threadIdx.x / 32, lane = threadIdx.x % 32;
    if (row >= N) return;
    const int4* from = reinterpret_cast<const int4*>(codes + size_t(row) * (K / 2));
    float sum = 0.0f;
    for (int at = lane; at < K / 32; at += 32) {
        const int4 four = from[at];
        const float scale = __half2float(scales[size_t(row) * (K / 64) + at / 2]);
        const float4* of_x = reinterpret_cast<const float4*>(x) + at * 8;
        const unsigned words[4] = {unsigned(four.x), unsigned(four.y), unsigned(four.z), unsigned(four.w)};
        float part = 0.0f;
#pragma unroll
        for (int w = 0; w < 4; ++w)
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                const float4 v = of_x[w * 2 + half];
                const unsigned nibbles = words[w] >> (16 * half);
                part += float(int(nibbles & 15) - 8) * v.x + float(int(nibbles >> 4 & 15) - 8) * v.y;
                part += float(int(nibbles >> 8 & 15) - 8) * v.z + float(int(nibbles >> 12 & 15) - 8) * v.w;
            }
        sum += scale * part;
    }
#pragma unroll
    for (int step = 16; step; step /= 2) sum += __shfl_xor_sync(~0u, sum, step);
    if (lane == 0) out[row] = sum;
}
