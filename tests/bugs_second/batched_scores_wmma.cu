/* evoengine
name: batched_scores_wmma
precision: fp16
summary: a block of four warps computes a tile of 32 x 32 with WMMA, 16 of K at a time
launches:
  - kernel: scores
    grid: ["ceil_div(N, 32)", "ceil_div(M, 32)", B]
    block: [128]
    args: [a, b, out, M, N, K, alpha]
*/
#include <cuda_fp16.h>
#include <mma.h>

using namespace nvcuda;

constexpr int TILE = 32, DEPTH = 16, PITCH = DEPTH + 8, OUT_PITCH = TILE + 4;

__device__ void load_tile(half* tile, const half* matrix, int first, int rows, int k0, int K) {
    for (int i = threadIdx.x; i < TILE * DEPTH; i += 128) {
        const int r = i / DEPTH, c = i % DEPTH;
        const bool inside = first + r < rows && k0 + c < K;
        tile[r * PITCH + c] = inside ? matrix[size_t(first + r) * K + k0 + c] : __float2half(0.0f);
    }
}

__global__ void scores(const half* a, const half* b, half* out, int M, int N, int K, float alpha) {
    __shared__ __align__(32) half tile_a[TILE * PITCH];
    __shared__ __align__(32) half tile_b[TILE * PITCH];
    __shared__ __align__(32) float tile_out[TILE * OUT_PITCH];
    const int warp = threadIdx.x / 32, wm = warp / 2 * 16, wn = warp % 2 * 16;
    const int m0 = blockIdx.y * TILE, n0 = blockIdx.x * TILE;
    const half* matrix_a = a + size_t(blockIdx.z) * M * K;
    const half* matrix_b = b + size_t(blockIdx.z) * N * K;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum;
    wmma::fill_fragment(sum, 0.0f);
    for (int k0 = 0; k0 < K; k0 += DEPTH) {
        load_tile(tile_a, matrix_a, m0, M, k0, K);
        load_tile(tile_b, matrix_b, n0, N, k0, K);
        __syncthreads();
        wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> fragment_a;
        wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::col_major> fragment_b;
        wmma::load_matrix_sync(fragment_a, tile_a + wm * PITCH, PITCH);
        wmma::load_matrix_sync(fragment_b, tile_b + wn * PITCH, PITCH);
        wmma::mma_sync(sum, fragment_a, fragment_b, sum);
        __syncthreads();  // the tiles have been read
    }
    wmma::store_matrix_sync(tile_out + wm * OUT_PITCH + wn, sum, OUT_PITCH, wmma::mem_row_major);
    __syncthreads();
    for (int i = threadIdx.x; i < TILE * TILE; i += 128) {
        const int m = m0 + i / TILE, n = n0 + i % TILE;
        if (m < M && n < N)
            out[(size_t(blockIdx.z) * M + m) * N + n] = __float2half(tile_out[i / TILE * OUT_PITCH + i % TILE] * alpha);
    }
}
