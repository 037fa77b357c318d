#include <cuda_fp16.h>

#define TILE 16

// Both operands pass through shared memory; what lies outside the matrices is zero.
__global__ void matmul_half_tiled(const __half* __restrict__ A, const __half* __restrict__ B, float* __restrict__ C, int M, int N, int K) {
    __shared__ __half As[TILE][TILE];
    __shared__ __half Bs[TILE][TILE + 1];
    const int tx = threadIdx.x, ty = threadIdx.y;
    const int row = blockIdx.y * TILE + ty, col = blockIdx.x * TILE + tx;
    float acc = 0.0f;
    for (int t = 0; t < (K + TILE - 1) / TILE; ++t) {
        const int a_col = t * TILE + tx, b_row = t * TILE + ty;
        As[ty][tx] = row < M && a_col < K ? A[row * K + a_col] : __float2half(0.0f);
        Bs[ty][tx] = b_row < K && col < N ? B[b_row * N + col] : __float2half(0.0f);
        __syncthreads();
#pragma unroll
        for (int k = 0; k < TILE; ++k) acc += __half2float(As[ty][k]) * __half2float(Bs[k][tx]);
        __syncthreads();
    }
    if (row < M && col < N) C[row * N + col] = acc;
}
