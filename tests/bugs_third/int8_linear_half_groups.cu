/* evoengine
name: int8_linear_half_groups
precision: fp16
summary: as int8_linear_warps, with four products added in half precision before they are scaled
launches:
  - kernel: linear
    grid: ["ceil_div(N, 4)", "ceil_div(B, 4)"]
    block: [128]
    args: [x, weight, zeros, scales, bias, out, B, N, K]
*/
#include <cuda_fp16.h>

constexpr int ROWS = 4, GROUP = 32;

__global__ void linear(const float* x, const signed char* weight, const signed char* zeros, const float* scales,
                       const float* bias, float* out, int B, int N, int K) {
    const int lane = threadIdx.x % 32, n = blockIdx.x * 4 + threadIdx.x / 32;
    if (n >= N) return;
    const int first = blockIdx.y * ROWS, groups = K / GROUP;
    const char4* packs = reinterpret_cast<const char4*>(weight + size_t(n) * K);
    float sums[ROWS] = {};
    for (int p = lane; p < K / 4; p += 32) {
        const int group = p * 4 / GROUP;
        const float scale = scales[n * groups + group];
        const int zero = zeros[n * groups + group];
        const char4 pack = packs[p];
        const half2 low = __floats2half2_rn(float(pack.x - zero), float(pack.y - zero));
        const half2 high = __floats2half2_rn(float(pack.z - zero), float(pack.w - zero));
        for (int r = 0; r < ROWS; ++r) {
            if (first + r >= B) break;
            const float4 in = reinterpret_cast<const float4*>(x + size_t(first + r) * K)[p];
            const half2 products = __hfma2(__floats2half2_rn(in.x, in.y), low, __hmul2(__floats2half2_rn(in.z, in.w), high));
            sums[r] += (__low2float(products) + __high2float(products)) * scale;
        }
    }
    for (int r = 0; r < ROWS; ++r) {
        float sum = sums[r];
        for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(~0u, sum, step);
        if (lane == 0 && first + r < B) out[size_t(first + r) * N + n] = sum + bias[n];
    }
}
