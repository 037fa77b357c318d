/* evoengine
name: lora_wmma_update
precision: fp16
summary: one launch goes down to rank R by warps, the other multiplies in wmma fragments and adds the way up in its epilogue
scratch:
  low: {dtype: float32, shape: [M, R]}
launches:
  - kernel: go_down<R>
    grid: ["ceil_div(M, 4)"]
    block: [32, 4]
    args: [x, down, low, M, K]
  - kernel: product<R>
    grid: ["ceil_div(N, 32)", "ceil_div(M, 32)"]
    block: [128]
    args: [x, weight, up, low, out, M, N, K, strength]
*/
#include <cuda_fp16.h>
#include <mma.h>

using namespace nvcuda;

constexpr int BM = 32, BN = 32, BK = 32, PITCH = BK + 8, OUT_PITCH = BN + 4;

template <int R>
__global__ void __launch_bounds__(128)
go_down(const __half* __restrict__ x, const __half* __restrict__ down, float* __restrict__ low, int M, int K) {
    const int row = blockIdx.x * 4 + threadIdx.y, lane = threadIdx.x;
    if (row >= M) return;
    const __half2* source = reinterpret_cast<const __half2*>(x + size_t(row) * K);
    float sums[R] = {};
    for (int k = lane; k < K / 2; k += 32) {
        const float2 pair = __half22float2(source[k]);
#pragma unroll
        for (int r = 0; r < R; ++r) {
            const float2 other = __half22float2(reinterpret_cast<const __half2*>(down + size_t(r) * K)[k]);
            sums[r] += pair.x * other.x + pair.y * other.y;
        }
    }
#pragma unroll
    for (int r = 0; r < R; ++r) {
#pragma unroll
        for (int offset = 16; offset > 0; offset /= 2) sums[r] += __shfl_down_sync(0xffffffffu, sums[r], offset);
        if (lane == 0) low[row * R + r] = sums[r];
    }
}

// 32 rows of a row-major matrix of K columns from `first`, columns from `k`; zeros outside.
__device__ __forceinline__ void stage(__half (*tile)[PITCH], const __half* __restrict__ matrix, int first, int rows,
                                      int k, int K) {
    const int r = threadIdx.x / 4, c = threadIdx.x % 4 * 8;
    uint4 eight = make_uint4(0, 0, 0, 0);
    if (first + r < rows && k + c < K)
        eight = *reinterpret_cast<const uint4*>(matrix + size_t(first + r) * K + k + c);
    *reinterpret_cast<uint4*>(&tile[r][c]) = eight;
}

template <int R>
__global__ void __launch_bounds__(128)
product(const __half* __restrict__ x, const __half* __restrict__ weight, const __half* __restrict__ up,
        const float* __restrict__ low, __half* __restrict__ out, int M, int N, int K, float strength) {
    __shared__ __align__(32) __half rows[BM][PITCH], columns[BN][PITCH];
    __shared__ __align__(32) float results[BM][OUT_PITCH];
    const int warp = threadIdx.x / 32;
    const int row = warp / 2 * 16, column = warp % 2 * 16;
    const int block_row = blockIdx.y * BM, block_column = blockIdx.x * BN;

    wmma::fragment<wmma::accumulator, 16, 16, 16, float> sums;
    wmma::fill_fragment(sums, 0.0f);
    for (int k = 0; k < K; k += BK) {
        stage(rows, x, block_row, M, k, K);
        stage(columns, weight, block_column, N, k, K);
        __syncthreads();
#pragma unroll
        for (int d = 0; d < BK; d += 16) {
            wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> a;
            wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::col_major> b;
            wmma::load_matrix_sync(a, &rows[row][d], PITCH);
            wmma::load_matrix_sync(b, &columns[column][d], PITCH);
            wmma::mma_sync(sums, a, b, sums);
        }
        __syncthreads();   // before the tiles are replaced
    }
    wmma::store_matrix_sync(&results[row][column], sums, OUT_PITCH, wmma::mem_row_major);
    __syncthreads();

    for (int i = threadIdx.x; i < BM * BN; i += 128) {
        const int m = block_row + i / BN, n = block_column + i % BN;
        if (m >= M || n >= N) continue;
        float correction = 0.0f;
#pragma unroll
        for (int r = 0; r < R; ++r) correction += low[m * R + r] * __half2float(up[n * R + r]);
        out[size_t(m) * N + n] = __float2half(results[i / BN][i % BN] + strength * correction);
    }
}
