// Each warp loads rows that the other stored.
#include <cuda_fp16.h>
#include <mma.h>
using namespace nvcuda;
__global__ void __launch_bounds__(64) wmma_before_barrier(const half* in, float* out) {
    __shared__ __align__(32) half tile[16 * 16];
    const int t = threadIdx.x;
    for (int i = t; i < 256; i += 64) tile[i] = in[i];
#ifdef FIXED
    __syncthreads();
#endif
    wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> a;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::col_major> b;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> c;
    wmma::fill_fragment(c, 0.0f);
    wmma::load_matrix_sync(a, tile, 16);    // FAULT
    wmma::load_matrix_sync(b, tile, 16);
    wmma::mma_sync(c, a, b, c);
    wmma::store_matrix_sync(out + t / 32 * 256, c, 16, wmma::mem_row_major);
}
