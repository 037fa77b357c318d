/* evoengine
name: int4_bf16_weights
precision: bf16
summary: a thread has one output; weights and inputs are rounded to bfloat16, products are added in single precision
launches:
  - kernel: linear
    grid: ["ceil_div(N, 32)", "ceil_div(M, 4)"]
    block: [32, 4]
    args: [x, codes, scales, zeros, bias, out, M, N, K, GROUP]
*/
#include <cuda_bf16.h>

__device__ __forceinline__ float rounded(float value) { return __bfloat162float(__float2bfloat16(value)); }

__global__ void linear(const float* x, const unsigned char* codes, const float* scales, const unsigned char* zeros,
                       const float* bias, float* out, int M, int N, int K, int group_size) {
    const int column = blockIdx.x * 32 + threadIdx.x, row = blockIdx.y * 4 + threadIdx.y;
    if (column >= N || row >= M) return;
    float sum = 0.0f;
    for (int k = 0; k < K; k += 2) {
        const size_t group = size_t(column) * (K / group_size) + k / group_size;
        const int both = codes[size_t(column) * (K / 2) + k / 2], zero = zeros[group];
        sum = fmaf(rounded(x[size_t(row) * K + k]), rounded(((both & 15) - zero) * scales[group]), sum);
        sum = fmaf(rounded(x[size_t(row) * K + k + 1]), rounded(((both >> 4) - zero) * scales[group]), sum);
    }
    out[size_t(row) * N + column] = rounded(sum + bias[column]);
}
