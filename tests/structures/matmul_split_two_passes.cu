/* evoengine
name: matmul_split_two_passes
precision: fp16
summary: slices of K in blocks of their own write sums in single precision, which a second launch adds up
tunables:
  SPLITS: [4, 2, 8]
scratch:
  parts: {dtype: float32, shape: [SPLITS, M, N]}
let:
  SLICE: 32 * ceil_div(ceil_div(K, 32), SPLITS)
launches:
  - kernel: multiply
    grid: ["ceil_div(N, 64)", "ceil_div(M, 64)", SPLITS]
    block: [128]
    args: [a, b, parts, M, N, K, SLICE]
  - kernel: add
    grid: ["ceil_div(M * N, 256)"]
    block: [256]
    args: [parts, out, M, N]
*/
#include <cuda_fp16.h>
#include <mma.h>

using namespace nvcuda;

// Eight halves of a row, zeros where they are outside of the matrix.
__device__ __forceinline__ int4 eight(const __half* matrix, int rows, int columns, int row, int column) {
    if (row < rows && column + 8 <= columns && columns % 8 == 0) return *reinterpret_cast<const int4*>(matrix + size_t(row) * columns + column);
    int4 found = make_int4(0, 0, 0, 0);
    for (int i = 0; i < 8; ++i)
        if (row < rows && column + i < columns) reinterpret_cast<__half*>(&found)[i] = matrix[size_t(row) * columns + column + i];
    return found;
}

__global__ void __launch_bounds__(128)
multiply(const __half* __restrict__ a, const __half* __restrict__ b, float* __restrict__ parts, int M, int N, int K, int slice) {
    __shared__ __align__(32) __half left[64][40], right[32][72];
    __shared__ __align__(32) float patches[4][16 * 20];
    const int t = threadIdx.x, warp = t / 32, lane = t % 32, row0 = blockIdx.y * 64, column0 = blockIdx.x * 64;
    const int first = blockIdx.z * slice, end = min(first + slice, K);
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum[4];
#pragma unroll
    for (int j = 0; j < 4; ++j) wmma::fill_fragment(sum[j], 0.0f);
    for (int k0 = first; k0 < end; k0 += 32) {
        int4 of_a[2], of_b[2];
#pragma unroll
        for (int i = 0; i < 2; ++i) {
            const int at = i * 128 + t;
            of_a[i] = eight(a, M, K, row0 + at / 4, k0 + at % 4 * 8);
            of_b[i] = eight(b, K, N, k0 + at / 8, column0 + at % 8 * 8);
        }
        __syncthreads();
#pragma unroll
        for (int i = 0; i < 2; ++i) {
            const int at = i * 128 + t;
            *reinterpret_cast<int4*>(&left[at / 4][at % 4 * 8]) = of_a[i];
            *reinterpret_cast<int4*>(&right[at / 8][at % 8 * 8]) = of_b[i];
        }
        __syncthreads();
#pragma unroll
        for (int k = 0; k < 32; k += 16) {
            wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> x;
            wmma::load_matrix_sync(x, &left[warp * 16][k], 40);
#pragma unroll
            for (int j = 0; j < 4; ++j) {
                wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::row_major> y;
                wmma::load_matrix_sync(y, &right[k][j * 16], 72);
                wmma::mma_sync(sum[j], x, y, sum[j]);
            }
        }
    }
#pragma unroll
    for (int j = 0; j < 4; ++j) {
        wmma::store_matrix_sync(patches[warp], sum[j], 20, wmma::mem_row_major);
        __syncwarp();
        for (int i = lane; i < 256; i += 32) {
            const int row = row0 + warp * 16 + i / 16, column = column0 + j * 16 + i % 16;
            if (row < M && column < N) parts[(size_t(blockIdx.z) * M + row) * N + column] = patches[warp][i / 16 * 20 + i % 16];
        }
        __syncwarp();
    }
}

__global__ void __launch_bounds__(256) add(const float* __restrict__ parts, __half* __restrict__ out, int M, int N) {
    const int at = blockIdx.x * 256 + threadIdx.x;
    if (at >= M * N) return;
    float sum = 0.0f;
#pragma unroll
    for (int i = 0; i < SPLITS; ++i) sum += parts[size_t(i) * M * N + at];
    out[at] = __float2half(sum);
}
