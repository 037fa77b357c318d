/* evoengine
name: matmul_split_k_atomics
precision: fp16
summary: K split among blocks that add to fp32 sums with atomics; a launch zeroes the sums, a last one rounds them
tunables:
  SPLITS: [4, 2, 8]
let:
  DEPTH: round_up(ceil_div(K, SPLITS), 16)
scratch:
  sums: {dtype: float32, shape: [M, N]}
launches:
  - kernel: zero
    grid: ["min(ceil_div(M * N, 256), 8 * SM_COUNT)"]
    block: [256]
    args: [sums, M * N]
  - kernel: multiply_slice
    grid: ["ceil_div(N, 64)", "ceil_div(M, 64)", SPLITS]
    block: [128]
    args: [a, b, sums, M, N, K, DEPTH]
  - kernel: to_half
    grid: ["min(ceil_div(M * N, 256), 8 * SM_COUNT)"]
    block: [256]
    args: [sums, out, M * N]
*/
#include <cuda_fp16.h>
#include <mma.h>

using namespace nvcuda;

__global__ void zero(float* sums, int count) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) sums[i] = 0.0f;
}

__global__ void to_half(const float* sums, __half* out, int count) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) out[i] = __float2half(sums[i]);
}

// 64 x 64 outputs, a warp for each 32 x 32; the order of the additions changes from run to run.
__global__ void __launch_bounds__(128)
multiply_slice(const __half* __restrict__ a, const __half* __restrict__ b, float* sums, int M, int N, int K, int depth) {
    __shared__ __align__(32) __half ta[64][24], tb[16][72];
    __shared__ __align__(32) float result[64][68];
    const int warp = threadIdx.x / 32, row0 = blockIdx.y * 64, column0 = blockIdx.x * 64;
    const int begin = blockIdx.z * depth, end = min(K, begin + depth);
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> c[2][2];
    for (auto& line : c) for (auto& f : line) wmma::fill_fragment(f, 0.0f);
    for (int k = begin; k < end; k += 16) {
        for (int i = threadIdx.x; i < 64 * 16; i += 128) {
            const int r = row0 + i / 16, kk = k + i % 16;
            ta[i / 16][i % 16] = r < M && kk < end ? a[size_t(r) * K + kk] : __half(0.0f);
        }
        for (int i = threadIdx.x; i < 16 * 64; i += 128) {
            const int kk = k + i / 64, n = column0 + i % 64;
            tb[i / 64][i % 64] = kk < end && n < N ? b[size_t(kk) * N + n] : __half(0.0f);
        }
        __syncthreads();
        wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> x[2];
        wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::row_major> y[2];
        for (int i = 0; i < 2; ++i) {
            wmma::load_matrix_sync(x[i], &ta[warp / 2 * 32 + i * 16][0], 24);
            wmma::load_matrix_sync(y[i], &tb[0][warp % 2 * 32 + i * 16], 72);
        }
        for (int i = 0; i < 2; ++i)
            for (int j = 0; j < 2; ++j) wmma::mma_sync(c[i][j], x[i], y[j], c[i][j]);
        __syncthreads();
    }
    for (int i = 0; i < 2; ++i)
        for (int j = 0; j < 2; ++j)
            wmma::store_matrix_sync(&result[warp / 2 * 32 + i * 16][warp % 2 * 32 + j * 16], c[i][j], 68, wmma::mem_row_major);
    __syncthreads();
    for (int i = threadIdx.x; i < 64 * 64; i += 128) {
        const int r = row0 + i / 64, n = column0 + i % 64;
        if (r < M && n < N) atomicAdd(&sums[size_t(r) * N + n], result[i / 64][i % 64]);
    }
}
