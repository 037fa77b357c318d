#include <cuda_fp16.h>
#include <mma.h>
using namespace nvcuda;

// D = A * B + C with sums in half, C and D by columns.
__global__ void wmma_half_accumulator(const half* A, const half* B, const half* C, half* D, int M, int N, int K) {
    const int row = blockIdx.y * 16, col = blockIdx.x * 16;
    wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> a;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::col_major> b;
    wmma::fragment<wmma::accumulator, 16, 16, 16, half> c;
    wmma::load_matrix_sync(c, C + col * M + row, M, wmma::mem_col_major);
    for (int k = 0; k < K; k += 16) {
        wmma::load_matrix_sync(a, A + row * K + k, K);
        wmma::load_matrix_sync(b, B + col * K + k, K);
        wmma::mma_sync(c, a, b, c);
    }
    wmma::store_matrix_sync(D + col * M + row, c, M, wmma::mem_col_major);
}
