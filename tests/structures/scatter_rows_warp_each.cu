/* evoengine
name: scatter_rows_warp_each
precision: fp16
summary: a warp a row, eight halves a lane at a time
launches:
  - kernel: scatter
    grid: ["ceil_div(T, 8)"]
    block: [256]
    args: [x, places, weights, out, T, D]
*/
#include <cuda_fp16.h>

__global__ void __launch_bounds__(256)
scatter(const __half* __restrict__ x, const int* __restrict__ places, const float* __restrict__ weights, __half* __restrict__ out, int T, int D) {
    const int row = blockIdx.x * 8 + threadIdx.x / 32, lane = threadIdx.x % 32;
    if (row >= T) return;
    const float weight = weights[row];
    const int4* from = reinterpret_cast<const int4*>(x + size_t(row) * D);
    int4* to = reinterpret_cast<int4*>(out + size_t(places[row]) * D);
    for (int i = lane; i < D / 8; i += 32) {
        int4 v = from[i];
        __half2* halves = reinterpret_cast<__half2*>(&v);
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            const float2 pair = __half22float2(halves[j]);
            halves[j] = __floats2half2_rn(pair.x * weight, pair.y * weight);
        }
        to[i] = v;
    }
}
