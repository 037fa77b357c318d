/* evoengine
name: transpose_through_half
precision: bf16
summary: the tile holds half precision
launches:
  - kernel: transpose
    grid: ["ceil_div(N, 32)", "ceil_div(M, 32)", B]
    block: [32, 8]
    args: [x, bias, out, M, N]
*/
#include <cuda_fp16.h>

__global__ void transpose(const float* x, const float* bias, float* out, int M, int N) {
    __shared__ half tile[32][33];
    const int n0 = blockIdx.x * 32, m0 = blockIdx.y * 32;
    const float* source = x + size_t(blockIdx.z) * M * N;
    float* target = out + size_t(blockIdx.z) * M * N;
    for (int r = threadIdx.y; r < 32; r += 8) {
        const int m = m0 + r, n = n0 + threadIdx.x;
        tile[r][threadIdx.x] = __float2half(m < M && n < N ? source[size_t(m) * N + n] : 0.0f);
    }
    __syncthreads();
    for (int r = threadIdx.y; r < 32; r += 8) {
        const int n = n0 + r, m = m0 + threadIdx.x;
        if (m < M && n < N) target[size_t(n) * M + m] = __half2float(tile[threadIdx.x][r]) + bias[n];
    }
}
