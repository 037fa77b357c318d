/* evoengine
name: matmul_thread_per_element
precision: fp16
summary: one thread an element of the output, one loop over K
launches:
  - kernel: matmul
    grid: ["ceil_div(N, 32)", "ceil_div(M, 8)"]
    block: [32, 8]
    args: [a, b, out, M, N, K]
*/
#include <cuda_fp16.h>

__global__ void matmul(const half* a, const half* b, half* out, int M, int N, int K) {
    int column = blockIdx.x * blockDim.x + threadIdx.x;
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row < M && column < N) {
        float sum = 0.0f;
        for (int k = 0; k < K; k++) sum += __half2float(a[(size_t)row * K + k]) * __half2float(b[(size_t)k * N + column]);
        out[(size_t)row * N + column] = __float2half(sum);
    }
}
