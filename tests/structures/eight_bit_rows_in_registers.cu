/* evoengine
name: eight_bit_rows_in_registers
precision: fp32
summary: a block a row, which stays in registers between the search for its largest and the division
launches:
  - kernel: quantise
    grid: [N]
    block: [128]
    args: [x, codes, scales, C]
*/
#include <cuda_fp16.h>

__global__ void __launch_bounds__(128) quantise(const __half* __restrict__ x, signed char* __restrict__ codes, float* __restrict__ scales, int C) {
    __shared__ float of_warp[4];
    const int t = threadIdx.x, row = blockIdx.x;
    const int4* from = reinterpret_cast<const int4*>(x + size_t(row) * C);
    int4 kept[4];
    float most = 0.0f;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        const int at = i * 128 + t;
        kept[i] = at < C / 8 ? from[at] : make_int4(0, 0, 0, 0);
    }
#pragma unroll
    for (int i = 0; i < 4; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            const float2 pair = __half22float2(reinterpret_cast<const __half2*>(&kept[i])[j]);
            most = fmaxf(most, fmaxf(fabsf(pair.x), fabsf(pair.y)));
        }
#pragma unroll
    for (int step = 16; step; step /= 2) most = fmaxf(most, __shfl_xor_sync(~0u, most, step));
    if (t % 32 == 0) of_warp[t / 32] = most;
    __syncthreads();
    most = fmaxf(fmaxf(of_warp[0], of_warp[1]), fmaxf(of_warp[2], of_warp[3]));
    const float inverse = most > 0.0f ? 127.0f / most : 0.0f;
    if (t == 0) scales[row] = most / 127.0f;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        const int at = i * 128 + t;
        unsigned words[2] = {};
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            const float2 pair = __half22float2(reinterpret_cast<const __half2*>(&kept[i])[j]);
            const unsigned low = __float2int_rn(pair.x * inverse) & 255, high = __float2int_rn(pair.y * inverse) & 255;
            words[j / 2] |= (low | high << 8) << (j % 2 * 16);
        }
        if (at < C / 8) reinterpret_cast<uint2*>(codes + size_t(row) * C)[at] = make_uint2(words[0], words[1]);
    }
}
