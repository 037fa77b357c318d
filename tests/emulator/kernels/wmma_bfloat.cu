#include <cuda_bf16.h>
#include <mma.h>
using namespace nvcuda;

// bfloat16 operands from shared memory, float sums.
__global__ void wmma_bfloat(const __nv_bfloat16* A, const __nv_bfloat16* B, float* C, int N, int K) {
    __shared__ __align__(32) __nv_bfloat16 As[16 * 16], Bs[16 * 16];
    const int row = blockIdx.y * 16, col = blockIdx.x * 16, lane = threadIdx.x;
    wmma::fragment<wmma::matrix_a, 16, 16, 16, __nv_bfloat16, wmma::row_major> a;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, __nv_bfloat16, wmma::row_major> b;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> c;
    wmma::fill_fragment(c, 0.0f);
    for (int k = 0; k < K; k += 16) {
        for (int i = lane; i < 256; i += 32) {
            As[i] = A[(row + i / 16) * K + k + i % 16];
            Bs[i] = B[(k + i / 16) * N + col + i % 16];
        }
        __syncwarp();
        wmma::load_matrix_sync(a, As, 16);
        wmma::load_matrix_sync(b, Bs, 16);
        wmma::mma_sync(c, a, b, c);
        __syncwarp();
    }
    wmma::store_matrix_sync(C + row * N + col, c, N, wmma::mem_row_major);
}
