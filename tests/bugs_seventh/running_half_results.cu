/* evoengine
name: running_half_results
precision: fp16
summary: a warp has a row and a lane a stretch of it, which it walks twice; the results leave rounded to half precision
launches:
  - kernel: scan
    grid: ["ceil_div(N, 2)"]
    block: [64]
    args: [x, out, N, L]
*/
#include <cuda_fp16.h>

__device__ __forceinline__ void join(float& top, float& sum, float other_top, float other_sum) {
    const float high = fmaxf(top, other_top);
    sum = sum * __expf(top - high) + other_sum * __expf(other_top - high);
    top = high;
}

__global__ void __launch_bounds__(64) scan(const float* __restrict__ x, float* __restrict__ out, int N, int L) {
    const int lane = threadIdx.x % 32, number = blockIdx.x * 2 + threadIdx.x / 32;
    if (number >= N) return;
    const float* row = x + size_t(number) * L;
    const int stretch = (L + 31) / 32, begin = min(lane * stretch, L), end = min(begin + stretch, L);
    float top = -1e30f, sum = 0.0f;
    for (int i = begin; i < end; ++i) join(top, sum, row[i], 1.0f);
    for (int step = 1; step < 32; step *= 2) {
        const float other_top = __shfl_up_sync(~0u, top, step), other_sum = __shfl_up_sync(~0u, sum, step);
        if (lane >= step) join(top, sum, other_top, other_sum);
    }
    top = __shfl_up_sync(~0u, top, 1);
    sum = __shfl_up_sync(~0u, sum, 1);
    if (lane == 0) top = -1e30f, sum = 0.0f;
    for (int i = begin; i < end; ++i) {
        join(top, sum, row[i], 1.0f);
        out[size_t(number) * L + i] = __half2float(__float2half(top + __logf(sum)));
    }
}
