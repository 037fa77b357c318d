/* evoengine
name: scores_e4m3
precision: fp8
summary: rows are scaled by powers of two and rounded to e4m3, sums are in single precision
launches:
  - kernel: scores
    grid: [M, B]
    block: [64]
    args: [a, b, out, M, N, K, alpha]
*/
#include <cuda_fp16.h>
#include <cuda_fp8.h>

// The power of two that brings the largest value of a row to 128 or above, below 256.
__device__ float factor_of(const half* row, int K) {
    float largest = 0.0f;
    for (int k = 0; k < K; ++k) largest = fmaxf(largest, fabsf(__half2float(row[k])));
    return largest > 0.0f ? exp2f(7.0f - floorf(log2f(largest))) : 1.0f;
}

__device__ float rounded(float x) { return float(__nv_fp8_e4m3(x)); }

__global__ void scores(const half* a, const half* b, half* out, int M, int N, int K, float alpha) {
    const half* left = a + (size_t(blockIdx.y) * M + blockIdx.x) * K;
    const float left_factor = factor_of(left, K);
    for (int n = threadIdx.x; n < N; n += 64) {
        const half* right = b + (size_t(blockIdx.y) * N + n) * K;
        const float right_factor = factor_of(right, K);
        float sum = 0.0f;
        for (int k = 0; k < K; ++k)
            sum += rounded(__half2float(left[k]) * left_factor) * rounded(__half2float(right[k]) * right_factor);
        out[(size_t(blockIdx.y) * M + blockIdx.x) * N + n] = __float2half(sum / left_factor / right_factor * alpha);
    }
}
