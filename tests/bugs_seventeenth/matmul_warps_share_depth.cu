/* evoengine
name: matmul_warps_share_depth
precision: fp16
summary: all four warps of a block have the same tile of 32 x 32 and every fourth slice of the depth, staged in shared memory of their own; their sums meet at the end
launches:
  - kernel: multiply_tile
    grid: ["ceil_div(N, 32)", "ceil_div(M, 32)"]
    block: [128]
    args: [a, b, out, M, N, K]
*/
#include <cuda_fp16.h>
#include <mma.h>

using namespace nvcuda;

constexpr int THREADS = 128, WARPS = 4, TILE = 32, DEPTH = 16, PITCH_A = DEPTH + 8, PITCH_B = TILE + 8, PITCH = TILE + 4;

__global__ void __launch_bounds__(THREADS)
multiply_tile(const __half* __restrict__ a, const __half* __restrict__ b, __half* __restrict__ out, int M, int N, int K) {
    __shared__ __align__(32) __half left[WARPS][TILE][PITCH_A];
    __shared__ __align__(32) __half right[WARPS][DEPTH][PITCH_B];
    __shared__ __align__(32) float sums[WARPS][TILE][PITCH];
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int top = blockIdx.y * TILE, side = blockIdx.x * TILE;
    const __half zero = __float2half(0.0f);

    wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum[2][2];
#pragma unroll
    for (int i = 0; i < 2; ++i)
#pragma unroll
        for (int j = 0; j < 2; ++j) wmma::fill_fragment(sum[i][j], 0.0f);

    const int slices = (K + DEPTH - 1) / DEPTH;
    for (int slice = warp; slice < slices; slice += WARPS) {
        const int depth = slice * DEPTH;
        for (int i = lane; i < TILE * DEPTH; i += 32) {
            const int r = i / DEPTH, c = i % DEPTH, m = top + r, from = depth + c;
            left[warp][r][c] = m < M && from < K ? a[size_t(m) * K + from] : zero;
        }
        for (int i = lane; i < DEPTH * TILE; i += 32) {
            const int r = i / TILE, c = i % TILE, n = side + c, from = depth + r;
            right[warp][r][c] = n < N && from < K ? b[size_t(from) * N + n] : zero;
        }
        __syncwarp();
        wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> rows[2];
        wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::row_major> columns[2];
#pragma unroll
        for (int i = 0; i < 2; ++i) {
            wmma::load_matrix_sync(rows[i], &left[warp][i * 16][0], PITCH_A);
            wmma::load_matrix_sync(columns[i], &right[warp][0][i * 16], PITCH_B);
        }
#pragma unroll
        for (int i = 0; i < 2; ++i)
#pragma unroll
            for (int j = 0; j < 2; ++j) wmma::mma_sync(sum[i][j], rows[i], columns[j], sum[i][j]);
        __syncwarp();   // both have been read
    }

#pragma unroll
    for (int i = 0; i < 2; ++i)
#pragma unroll
        for (int j = 0; j < 2; ++j)
            wmma::store_matrix_sync(&sums[warp][i * 16][j * 16], sum[i][j], PITCH, wmma::mem_row_major);
    __syncthreads();
    for (int i = threadIdx.x; i < TILE * TILE; i += THREADS) {
        const int r = i / TILE, c = i % TILE;
        float result = sums[0][r][c];
#pragma unroll
        for (int w = 1; w < WARPS; ++w) result += sums[w][r][c];
        if (top + r < M && side + c < N) out[size_t(top + r) * N + side + c] = __float2half(result);
    }
}
