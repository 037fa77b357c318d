/* evoengine
name: cross_entropy_block_rows
precision: fp32
summary: a block a row of halves; the row is read twice, for its maximum and for its sum of exponentials
launches:
  - kernel: loss
    grid: [N]
    block: [256]
    args: [logits, targets, out, C]
*/
#include <cuda_fp16.h>

__global__ void __launch_bounds__(256) loss(const __half* __restrict__ logits, const int* __restrict__ targets, float* __restrict__ out, int C) {
    __shared__ float of_warp[2][8];
    const int t = threadIdx.x;
    const __half* row = logits + size_t(blockIdx.x) * C;
    const int4* from = reinterpret_cast<const int4*>(row);
    __half2 most = __float2half2_rn(-65504.0f);
    for (int at = t; at < C / 8; at += 256) {
        const int4 v = from[at];
#pragma unroll
        for (int j = 0; j < 4; ++j) most = __hmax2(most, reinterpret_cast<const __half2*>(&v)[j]);
    }
    float top = fmaxf(__low2float(most), __high2float(most));
#pragma unroll
    for (int step = 16; step; step /= 2) top = fmaxf(top, __shfl_xor_sync(~0u, top, step));
    if (t % 32 == 0) of_warp[0][t / 32] = top;
    __syncthreads();
#pragma unroll
    for (int i = 0; i < 8; ++i) top = fmaxf(top, of_warp[0][i]);
    float sum = 0.0f;
    for (int at = t; at < C / 8; at += 256) {
        const int4 v = from[at];
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            const float2 pair = __half22float2(reinterpret_cast<const __half2*>(&v)[j]);
            sum += __expf(pair.x - top) + __expf(pair.y - top);
        }
    }
#pragma unroll
    for (int step = 16; step; step /= 2) sum += __shfl_xor_sync(~0u, sum, step);
    if (t % 32 == 0) of_warp[1][t / 32] = sum;
    __syncthreads();
    if (t == 0) {
        sum = 0.0f;
        for (int i = 0; i < 8; ++i) sum += of_warp[1][i];
        out[blockIdx.x] = logf(sum) + top - __half2float(row[targets[blockIdx.x]]);
    }
}
