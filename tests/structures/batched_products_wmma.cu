/* evoengine
name: batched_products_wmma
precision: fp16
summary: tiles of 64 x 64 by the WMMA interface, 32 of K at a time through padded shared memory without a pipeline
launches:
  - kernel: multiply
    grid: [N // 64, M // 64, B]
    block: [128]
    args: [a, b, out, M, N, K]
*/
#include <cuda_fp16.h>
#include <mma.h>
using namespace nvcuda;

__global__ void __launch_bounds__(128)
multiply(const __half* __restrict__ a, const __half* __restrict__ b, __half* __restrict__ out, int M, int N, int K) {
    __shared__ __align__(128) __half of_a[64][40], of_b[32][72];
    __shared__ __align__(128) float tile[64][68];
    const int t = threadIdx.x, warp = t / 32, wm = warp / 2 * 32, wn = warp % 2 * 32;
    const __half* rows = a + (size_t(blockIdx.z) * M + blockIdx.y * 64) * K;
    const __half* columns = b + size_t(blockIdx.z) * K * N + blockIdx.x * 64;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum[2][2];
#pragma unroll
    for (int i = 0; i < 2; ++i)
#pragma unroll
        for (int j = 0; j < 2; ++j) wmma::fill_fragment(sum[i][j], 0.0f);
    for (int k = 0; k < K; k += 32) {
#pragma unroll
        for (int i = 0; i < 2; ++i) {
            const int at = i * 128 + t;
            *reinterpret_cast<int4*>(&of_a[at / 4][at % 4 * 8]) = *reinterpret_cast<const int4*>(rows + size_t(at / 4) * K + k + at % 4 * 8);
            *reinterpret_cast<int4*>(&of_b[at / 8][at % 8 * 8]) = *reinterpret_cast<const int4*>(columns + size_t(k + at / 8) * N + at % 8 * 8);
        }
        __syncthreads();
#pragma unroll
        for (int step = 0; step < 32; step += 16) {
            wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> fa[2];
            wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::row_major> fb[2];
#pragma unroll
            for (int i = 0; i < 2; ++i) wmma::load_matrix_sync(fa[i], &of_a[wm + i * 16][step], 40);
#pragma unroll
            for (int j = 0; j < 2; ++j) wmma::load_matrix_sync(fb[j], &of_b[step][wn + j * 16], 72);
#pragma unroll
            for (int i = 0; i < 2; ++i)
#pragma unroll
                for (int j = 0; j < 2; ++j) wmma::mma_sync(sum[i][j], fa[i], fb[j], sum[i][j]);
        }
        __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < 2; ++i)
#pragma unroll
        for (int j = 0; j < 2; ++j) wmma::store_matrix_sync(&tile[wm + i * 16][wn + j * 16], sum[i][j], 68, wmma::mem_row_major);
    __syncthreads();
    __half* to = out + (size_t(blockIdx.z) * M + blockIdx.y * 64) * N + blockIdx.x * 64;
#pragma unroll
    for (int i = 0; i < 16; ++i) {
        const int at = i * 128 + t, row = at / 32, column = at % 32 * 2;
        *reinterpret_cast<__half2*>(to + size_t(row) * N + column) = __floats2half2_rn(tile[row][column], tile[row][column + 1]);
    }
}
