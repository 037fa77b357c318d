/* evoengine
name: half_products_warp_each
precision: fp16
summary: a warp a product, by four fragments of tensor instructions straight from global memory; sums leave through shared memory
launches:
  - kernel: multiply
    grid: ["ceil_div(B, 4)"]
    block: [128]
    args: [a, b, out, B]
*/
#include <cuda_fp16.h>
#include <mma.h>

using namespace nvcuda;

__global__ void __launch_bounds__(128)
multiply(const __half* __restrict__ a, const __half* __restrict__ b, __half* __restrict__ out, int B) {
    __shared__ __align__(32) float patches[4][16 * 20];
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, own = blockIdx.x * 4 + warp;
    if (own >= B) return;
    wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> left[2][2];
    wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::row_major> right[2][2];
#pragma unroll
    for (int i = 0; i < 2; ++i)
#pragma unroll
        for (int j = 0; j < 2; ++j) {
            wmma::load_matrix_sync(left[i][j], a + size_t(own) * 1024 + i * 512 + j * 16, 32);
            wmma::load_matrix_sync(right[i][j], b + size_t(own) * 1024 + i * 512 + j * 16, 32);
        }
#pragma unroll
    for (int i = 0; i < 2; ++i)
#pragma unroll
        for (int j = 0; j < 2; ++j) {
            wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum;
            wmma::fill_fragment(sum, 0.0f);
            wmma::mma_sync(sum, left[i][0], right[0][j], sum);
            wmma::mma_sync(sum, left[i][1], right[1][j], sum);
            wmma::store_matrix_sync(patches[warp], sum, 20, wmma::mem_row_major);
            __syncwarp();
            const int row = lane / 2, column = lane % 2 * 8;
            const float* from = patches[warp] + row * 20 + column;
            int4 to;
#pragma unroll
            for (int p = 0; p < 4; ++p) reinterpret_cast<__half2*>(&to)[p] = __floats2half2_rn(from[2 * p], from[2 * p + 1]);
            *reinterpret_cast<int4*>(out + size_t(own) * 1024 + (i * 16 + row) * 32 + j * 16 + column) = to;
            __syncwarp();
        }
}
