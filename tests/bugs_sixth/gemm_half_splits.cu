/* evoengine
name: gemm_half_splits
precision: fp16
summary: three parts of the depth in blocks of their own, operands in half precision, a launch adds the parts
scratch:
  parts: {shape: [3, M, N], dtype: float32}
launches:
  - kernel: multiply
    grid: ["ceil_div(N, 16)", "ceil_div(M, 16)", 3]
    block: [16, 16]
    args: [a, b, parts, M, N, K]
  - kernel: finish
    grid: ["ceil_div(M * N, 256)"]
    block: [256]
    args: [parts, bias, out, M, N]
*/
#include <cuda_fp16.h>

constexpr int TILE = 16, SPLITS = 3;

__global__ void multiply(const float* a, const float* b, float* parts, int M, int N, int K) {
    __shared__ __half left[TILE][TILE];
    __shared__ __half right[TILE][TILE];
    const int x = threadIdx.x, y = threadIdx.y;
    const int m = blockIdx.y * TILE + y, n = blockIdx.x * TILE + x;
    const int each = (K + SPLITS - 1) / SPLITS;
    const int begin = blockIdx.z * each, end = min(K, begin + each);
    float sum = 0.0f;
    for (int k0 = begin; k0 < end; k0 += TILE) {
        left[y][x] = __float2half(m < M && k0 + x < end ? a[size_t(m) * K + k0 + x] : 0.0f);
        right[y][x] = __float2half(n < N && k0 + y < end ? b[size_t(k0 + y) * N + n] : 0.0f);
        __syncthreads();
        for (int d = 0; d < TILE; ++d) sum += __half2float(left[y][d]) * __half2float(right[d][x]);
        __syncthreads();
    }
    if (m < M && n < N) parts[(size_t(blockIdx.z) * M + m) * N + n] = sum;
}

__global__ void finish(const float* parts, const float* bias, float* out, int M, int N) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= M * N) return;
    float sum = bias[i % N];
    for (int part = 0; part < SPLITS; ++part) sum += parts[size_t(part) * M * N + i];
    out[i] = fmaxf(sum, 0.0f);
}
