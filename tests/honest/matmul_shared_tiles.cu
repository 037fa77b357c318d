/* evoengine
name: matmul_shared_tiles
precision: fp16
summary: the textbook's square tiles in static shared memory, one element a thread
tunables:
  TILE: [32, 16]
launches:
  - kernel: matmul
    grid: ["ceil_div(N, TILE)", "ceil_div(M, TILE)"]
    block: [TILE, TILE]
    args: [a, b, out, M, N, K]
*/
#include <cuda_fp16.h>

__global__ void matmul(const __half* __restrict__ A, const __half* __restrict__ B, __half* __restrict__ C, int M, int N, int K) {
    __shared__ float As[TILE][TILE];
    __shared__ float Bs[TILE][TILE];
    const int tx = threadIdx.x, ty = threadIdx.y;
    const int row = blockIdx.y * TILE + ty, col = blockIdx.x * TILE + tx;
    float acc = 0.0f;
    for (int t = 0; t < (K + TILE - 1) / TILE; ++t) {
        const int ka = t * TILE + tx, kb = t * TILE + ty;
        As[ty][tx] = row < M && ka < K ? __half2float(A[(size_t)row * K + ka]) : 0.0f;
        Bs[ty][tx] = kb < K && col < N ? __half2float(B[(size_t)kb * N + col]) : 0.0f;
        __syncthreads();
#pragma unroll
        for (int k = 0; k < TILE; ++k) acc += As[ty][k] * Bs[k][tx];
        __syncthreads();
    }
    if (row < M && col < N) C[(size_t)row * N + col] = __float2half_rn(acc);
}
