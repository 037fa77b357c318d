#include <cuda_fp16.h>
#include <mma.h>
using namespace nvcuda;

// D = relu(alpha * A^T * B^T + beta * C), both operands by columns; the elementwise part runs over the fragments.
__global__ void wmma_col_major(const half* At, const half* Bt, const float* C, float* D, int M, int N, int K, float alpha, float beta) {
    const int row = blockIdx.y * 16, col = blockIdx.x * 16;
    wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::col_major> a;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::col_major> b;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum, c;
    wmma::fill_fragment(sum, 0.0f);
    for (int k = 0; k < K; k += 16) {
        wmma::load_matrix_sync(a, At + k * M + row, M);
        wmma::load_matrix_sync(b, Bt + col * K + k, K);
        wmma::mma_sync(sum, a, b, sum);
    }
    wmma::load_matrix_sync(c, C + row * N + col, N, wmma::mem_row_major);
#pragma unroll
    for (int i = 0; i < c.num_elements; i++) c.x[i] = fmaxf(alpha * sum.x[i] + beta * c.x[i], 0.0f);
    wmma::store_matrix_sync(D + row * N + col, c, N, wmma::mem_row_major);
}
