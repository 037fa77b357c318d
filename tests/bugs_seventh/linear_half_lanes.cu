/* evoengine
name: linear_half_lanes
precision: fp16
summary: a warp has a query head and goes position by position; a lane keeps a column of the state, features and values are rounded to half precision
launches:
  - kernel: attend
    grid: [HQ, B]
    block: [32]
    args: [q, k, v, out, HQ, HKV, S]
*/
#include <cuda_fp16.h>

constexpr int D = 32;

__device__ __forceinline__ float rounded(float x) { return __half2float(__float2half(x)); }
__device__ __forceinline__ float feature(float x) { return rounded(x > 0.0f ? x + 1.0f : __expf(x)); }

__global__ void __launch_bounds__(32)
attend(const float* __restrict__ q, const float* __restrict__ k, const float* __restrict__ v, float* __restrict__ out,
       int HQ, int HKV, int S) {
    const int lane = threadIdx.x;
    const size_t from_q = (size_t(blockIdx.y) * HQ + blockIdx.x) * S * D;
    const size_t from_k = (size_t(blockIdx.y) * HKV + blockIdx.x / (HQ / HKV)) * S * D;
    float state[D] = {}, features = 0.0f;   // column `lane` of the state, feature `lane` of the sum
    for (int place = 0; place < S; ++place) {
        const size_t at = size_t(place) * D + lane;
        const float x = feature(q[from_q + at]), y = feature(k[from_k + at]), value = rounded(v[from_k + at]);
        features += y;
        float total = x * features, sum = 0.0f;
        for (int step = 16; step > 0; step /= 2) total += __shfl_xor_sync(~0u, total, step);
        for (int d = 0; d < D; ++d) {
            state[d] += __shfl_sync(~0u, y, d) * value;
            sum += __shfl_sync(~0u, x, d) * state[d];
        }
        out[from_q + at] = sum / total;
    }
}
