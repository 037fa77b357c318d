/* evoengine
name: matmul_wmma_staged
precision: fp16
summary: tiles of 32 x 64 with wmma, a warp has 16 x 32; the sums go through shared memory to become halves
launches:
  - kernel: matmul
    grid: ["ceil_div(M, 32)", "ceil_div(N, 64)"]
    block: [128]
    args: [a, b, out, M, N, K]
*/
#include <cuda_fp16.h>
#include <mma.h>
using namespace nvcuda;

constexpr int BM = 32, BN = 64, BK = 32, A_PITCH = BK + 8, B_PITCH = BN + 8, C_PITCH = BN + 4;

__global__ void matmul(const half* a, const half* b, half* out, int M, int N, int K) {
    __shared__ __align__(32) half a_tile[BM * A_PITCH];
    __shared__ __align__(32) half b_tile[BK * B_PITCH];
    __shared__ __align__(32) float staged[BM * C_PITCH];
    const int warp = threadIdx.x / 32;
    const int warp_row = warp / 2 * 16, warp_column = warp % 2 * 32;
    const int block_row = blockIdx.x * BM, block_column = blockIdx.y * BN;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> sums[2];
    for (int j = 0; j < 2; ++j) wmma::fill_fragment(sums[j], 0.0f);
    for (int depth = 0; depth < K; depth += BK) {
        for (int i = threadIdx.x; i < BM * BK; i += 128) {
            const int r = i / BK, c = i % BK;
            a_tile[r * A_PITCH + c] =
                block_row + r < M && depth + c < K ? a[size_t(block_row + r) * K + depth + c] : __float2half(0.0f);
        }
        for (int i = threadIdx.x; i < BK * BN; i += 128) {
            const int r = i / BN, c = i % BN;
            b_tile[r * B_PITCH + c] =
                depth + r < K && block_column + c < N ? b[size_t(depth + r) * N + block_column + c] : __float2half(0.0f);
        }
        __syncthreads();
        for (int d = 0; d < BK; d += 16) {
            wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> x;
            wmma::load_matrix_sync(x, a_tile + warp_row * A_PITCH + d, A_PITCH);
            for (int j = 0; j < 2; ++j) {
                wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::row_major> y;
                wmma::load_matrix_sync(y, b_tile + d * B_PITCH + warp_column + j * 16, B_PITCH);
                wmma::mma_sync(sums[j], x, y, sums[j]);
            }
        }
        __syncthreads();
    }
    for (int j = 0; j < 2; ++j)
        wmma::store_matrix_sync(
            staged + warp_row * C_PITCH + warp_column + j * 16, sums[j], C_PITCH, wmma::mem_row_major);
    __syncthreads();
    for (int i = threadIdx.x; i < BM * BN; i += 128) {
        const int row = block_row + i / BN, column = block_column + i % BN;
        if (row < M && column < N) out[size_t(row) * N + column] = __float2half(staged[i / BN * C_PITCH + i % BN]);
    }
}
