#include <cuda_fp16.h>
#include <mma.h>
using namespace nvcuda;

constexpr int WARPS = 4, TILE = 16;

__device__ __forceinline__ float gelu(float x) { return 0.5f * x * (1.0f + erff(x * 0.70710678f)); }

// Sides of any length: operands are padded with zeros in shared memory, results pass through it to bias, gelu and a guarded store.
__global__ void __launch_bounds__(WARPS * 32)
wmma_epilogue(const half* A, const half* B, const half* bias, half* C, int M, int N, int K) {
    __shared__ __align__(32) half As[TILE][TILE + 8];
    __shared__ __align__(32) half Bs[TILE][WARPS * TILE + 8];
    __shared__ __align__(32) float Cs[WARPS][TILE][TILE + 4];
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int row0 = blockIdx.y * TILE, col0 = blockIdx.x * WARPS * TILE;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> c;
    wmma::fill_fragment(c, 0.0f);
    for (int k0 = 0; k0 < K; k0 += TILE) {
        for (int i = threadIdx.x; i < TILE * TILE; i += WARPS * 32) {
            const int r = i / TILE, k = i % TILE;
            As[r][k] = row0 + r < M && k0 + k < K ? A[(row0 + r) * K + k0 + k] : __float2half(0.0f);
        }
        for (int i = threadIdx.x; i < TILE * WARPS * TILE; i += WARPS * 32) {
            const int k = i / (WARPS * TILE), n = i % (WARPS * TILE);
            Bs[k][n] = k0 + k < K && col0 + n < N ? B[(k0 + k) * N + col0 + n] : __float2half(0.0f);
        }
        __syncthreads();
        wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> a;
        wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::row_major> b;
        wmma::load_matrix_sync(a, &As[0][0], TILE + 8);
        wmma::load_matrix_sync(b, &Bs[0][warp * TILE], WARPS * TILE + 8);
        wmma::mma_sync(c, a, b, c);
        __syncthreads();
    }
    wmma::store_matrix_sync(&Cs[warp][0][0], c, TILE + 4, wmma::mem_row_major);
    __syncwarp();
    for (int i = lane; i < TILE * TILE; i += 32) {
        const int r = i / TILE, n = i % TILE, row = row0 + r, col = col0 + warp * TILE + n;
        if (row < M && col < N) C[row * N + col] = __float2half(gelu(Cs[warp][r][n] + __half2float(bias[col])));
    }
}
