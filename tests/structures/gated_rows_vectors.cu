/* evoengine
name: gated_rows_vectors
precision: fp16
summary: a thread eight halves of the output; a row of blocks a row
launches:
  - kernel: gate
    grid: ["ceil_div(F, 2048)", N]
    block: [256]
    args: [x, out, F]
*/
#include <cuda_fp16.h>

__global__ void __launch_bounds__(256) gate(const __half* __restrict__ x, __half* __restrict__ out, int F) {
    const int at = blockIdx.x * 256 + threadIdx.x;
    if (at * 8 >= F) return;
    const int4 first = reinterpret_cast<const int4*>(x + size_t(blockIdx.y) * 2 * F)[at];
    const int4 second = reinterpret_cast<const int4*>(x + (size_t(blockIdx.y) * 2 + 1) * F)[at];
    int4 result;
#pragma unroll
    for (int j = 0; j < 4; ++j) {
        const float2 g = __half22float2(reinterpret_cast<const __half2*>(&first)[j]), u = __half22float2(reinterpret_cast<const __half2*>(&second)[j]);
        reinterpret_cast<__half2*>(&result)[j] = __floats2half2_rn(g.x / (1.0f + __expf(-g.x)) * u.x, g.y / (1.0f + __expf(-g.y)) * u.y);
    }
    reinterpret_cast<int4*>(out + size_t(blockIdx.y) * F)[at] = result;
}
