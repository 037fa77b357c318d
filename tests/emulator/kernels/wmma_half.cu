#include <cuda_fp16.h>
#include <mma.h>
using namespace nvcuda;

// One warp a 16x16 tile of C; sides are multiples of 16.
__global__ void wmma_half(const half* A, const half* B, float* C, int M, int N, int K) {
    const int tile_row = blockIdx.y, tile_col = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
    if (tile_col * 16 >= N) return;    // a whole warp leaves
    wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> a;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::row_major> b;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> c;
    wmma::fill_fragment(c, 0.0f);
    for (int k = 0; k < K; k += 16) {
        wmma::load_matrix_sync(a, A + tile_row * 16 * K + k, K);
        wmma::load_matrix_sync(b, B + k * N + tile_col * 16, N);
        wmma::mma_sync(c, a, b, c);
    }
    wmma::store_matrix_sync(C + tile_row * 16 * N + tile_col * 16, c, N, wmma::mem_row_major);
}
