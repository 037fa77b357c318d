/* evoengine
name: cosine_staged_norms
precision: fp16
summary: tiles of 32 x 32 on wmma; the threads that stage rows add the squares of what they stage, and the products are divided by both lengths at the end
launches:
  - kernel: similarities
    grid: ["ceil_div(N, 32)", "ceil_div(M, 32)"]
    block: [128]
    args: [x, y, out, M, N, D, log_scale, eps]
*/
#include <cuda_fp16.h>
#include <mma.h>

using namespace nvcuda;

constexpr int THREADS = 128, TILE = 32, PITCH = TILE + 8, OUT_PITCH = TILE + 4;

// Eight numbers of a row, zeros outside of the matrix; their squares are added to `squares`.
__device__ __forceinline__ void stage(__half* to, const __half* __restrict__ from, bool inside, float& squares) {
    uint4 eight = make_uint4(0u, 0u, 0u, 0u);
    if (inside) eight = *reinterpret_cast<const uint4*>(from);
    *reinterpret_cast<uint4*>(to) = eight;
    const __half2* pairs = reinterpret_cast<const __half2*>(&eight);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        const float2 pair = __half22float2(pairs[i]);
        squares = fmaf(pair.x, pair.x, fmaf(pair.y, pair.y, squares));
    }
}

// The length of a row, from the squares of the four threads that have staged it.
__device__ __forceinline__ float length(float squares, float eps) {
#pragma unroll
    for (int mask = 1; mask < 4; mask *= 2) squares += __shfl_xor_sync(0xffffffffu, squares, mask);
    return fmaxf(sqrtf(squares), eps);
}

__global__ void __launch_bounds__(THREADS)
similarities(const __half* __restrict__ x, const __half* __restrict__ y, __half* __restrict__ out, int M, int N,
             int D, float log_scale, float eps) {
    __shared__ __align__(32) __half rows[TILE][PITCH], columns[TILE][PITCH];
    __shared__ __align__(32) float products[TILE][OUT_PITCH];
    __shared__ float lengths[2][TILE];
    const int warp = threadIdx.x / 32, warp_row = warp / 2 * 16, warp_column = warp % 2 * 16;
    const int block_row = blockIdx.y * TILE, block_column = blockIdx.x * TILE;
    const int r = threadIdx.x / 4, c = threadIdx.x % 4 * 8;

    float row_squares = 0.0f, column_squares = 0.0f;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> sums;
    wmma::fill_fragment(sums, 0.0f);
    for (int d = 0; d < D; d += TILE) {
        stage(&rows[r][c], x + size_t(block_row + r) * D + d + c, block_row + r < M && d + c < D, row_squares);
        stage(&columns[r][c], y + size_t(block_column + r) * D + d + c, block_column + r < N && d + c < D,
              column_squares);
        __syncthreads();
#pragma unroll
        for (int k = 0; k < TILE; k += 16) {
            wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> a;
            wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::col_major> b;
            wmma::load_matrix_sync(a, &rows[warp_row][k], PITCH);
            wmma::load_matrix_sync(b, &columns[warp_column][k], PITCH);
            wmma::mma_sync(sums, a, b, sums);
        }
        __syncthreads();
    }
    wmma::store_matrix_sync(&products[warp_row][warp_column], sums, OUT_PITCH, wmma::mem_row_major);
    const float row_length = length(row_squares, eps), column_length = length(column_squares, eps);
    if (threadIdx.x % 4 == 0) {
        lengths[0][r] = row_length;
        lengths[1][r] = column_length;
    }
    __syncthreads();

    const float factor = expf(log_scale);
    for (int i = threadIdx.x; i < TILE * TILE; i += THREADS) {
        const int row = i / TILE, column = i % TILE, m = block_row + row, n = block_column + column;
        if (m < M && n < N)
            out[size_t(m) * N + n] =
                __float2half(products[row][column] * factor / (lengths[0][row] * lengths[1][column]));
    }
}
