#include <cuda_fp16.h>
#include <mma.h>
using namespace nvcuda;

// The three shapes of a warp's tile: 16x16, 32x8 and 8x32.
template <int M, int N>
__global__ void wmma_shapes(const half* A, const half* B, float* C, int columns, int K) {
    const int row = blockIdx.y * M, col = blockIdx.x * N;
    wmma::fragment<wmma::matrix_a, M, N, 16, half, wmma::row_major> a;
    wmma::fragment<wmma::matrix_b, M, N, 16, half, wmma::row_major> b;
    wmma::fragment<wmma::accumulator, M, N, 16, float> c;
    wmma::fill_fragment(c, 0.0f);
    for (int k = 0; k < K; k += 16) {
        wmma::load_matrix_sync(a, A + row * K + k, K);
        wmma::load_matrix_sync(b, B + k * columns + col, columns);
        wmma::mma_sync(c, a, b, c);
    }
    wmma::store_matrix_sync(C + row * columns + col, c, columns, wmma::mem_row_major);
}
