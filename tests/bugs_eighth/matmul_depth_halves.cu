/* evoengine
name: matmul_depth_halves
precision: fp16
summary: tiles of 64 x 32 on WMMA; two of four warps have the first half of every slice of the depth, two the second; tiles are walked in groups of rows
let:
  V: 8 if K % 8 == 0 and N % 8 == 0 else 1
  TILES_M: ceil_div(M, 64)
  TILES_N: ceil_div(N, 32)
launches:
  - kernel: matmul<V>
    grid: [TILES_M * TILES_N]
    block: [128]
    args: [a, b, out, M, N, K, TILES_M, TILES_N]
*/
#include <cuda_fp16.h>
#include <mma.h>

using namespace nvcuda;

constexpr int BM = 64, BN = 32, BK = 32, GROUP = 4, THREADS = 128;
constexpr int A_PITCH = BK + 8, B_PITCH = BN + 8, SUM_PITCH = BN + 4;

using Left = wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major>;
using Right = wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::row_major>;
using Sums = wmma::fragment<wmma::accumulator, 16, 16, 16, float>;

template <int V> struct alignas(2 * V) Pack { half value[V]; };

template <int V>
__global__ void __launch_bounds__(THREADS)
matmul(const half* __restrict__ a, const half* __restrict__ b, half* __restrict__ out, int M, int N, int K, int tiles_m,
       int tiles_n) {
    __shared__ __align__(32) half a_tile[BM * A_PITCH];
    __shared__ __align__(32) half b_tile[BK * B_PITCH];
    __shared__ __align__(32) float sums[BM * SUM_PITCH];
    const int warp = threadIdx.x / 32, rows = warp % 2 * 32, part = warp / 2;

    // tiles of GROUP rows of tiles follow one another, so that they share the right operand in L2
    const int tiles = GROUP * tiles_n, group_first = blockIdx.x / tiles * GROUP;
    const int group_size = min(tiles_m - group_first, GROUP), within = blockIdx.x % tiles;
    const int block_row = (group_first + within % group_size) * BM, block_column = within / group_size * BN;

    Sums sum[2][2];
    for (int i = 0; i < 2; ++i)
        for (int j = 0; j < 2; ++j) wmma::fill_fragment(sum[i][j], 0.0f);

    for (int depth = 0; depth < K; depth += BK) {
        for (int i = threadIdx.x * V; i < BM * BK; i += THREADS * V) {
            const int row = block_row + i / BK, left = depth + i % BK;
            Pack<V> piece = {};
            if (row < M && left < K) piece = *reinterpret_cast<const Pack<V>*>(a + size_t(row) * K + left);
            *reinterpret_cast<Pack<V>*>(a_tile + i / BK * A_PITCH + i % BK) = piece;
        }
        for (int i = threadIdx.x * V; i < BK * BN; i += THREADS * V) {
            const int down = depth + i / BN, column = block_column + i % BN;
            Pack<V> piece = {};
            if (down < K && column < N) piece = *reinterpret_cast<const Pack<V>*>(b + size_t(down) * N + column);
            *reinterpret_cast<Pack<V>*>(b_tile + i / BN * B_PITCH + i % BN) = piece;
        }
        __syncthreads();
        Left x[2];
        Right y[2];
        for (int i = 0; i < 2; ++i) {
            wmma::load_matrix_sync(x[i], a_tile + (rows + i * 16) * A_PITCH + part * 16, A_PITCH);
            wmma::load_matrix_sync(y[i], b_tile + part * 16 * B_PITCH + i * 16, B_PITCH);
        }
        for (int i = 0; i < 2; ++i)
            for (int j = 0; j < 2; ++j) wmma::mma_sync(sum[i][j], x[i], y[j], sum[i][j]);
        __syncthreads();
    }

    if (part == 1)
        for (int i = 0; i < 2; ++i)
            for (int j = 0; j < 2; ++j)
                wmma::store_matrix_sync(sums + (rows + i * 16) * SUM_PITCH + j * 16, sum[i][j], SUM_PITCH, wmma::mem_row_major);
    __syncthreads();
    if (part == 0)
        for (int i = 0; i < 2; ++i)
            for (int j = 0; j < 2; ++j) {
                float* at = sums + (rows + i * 16) * SUM_PITCH + j * 16;
                Sums other;
                wmma::load_matrix_sync(other, at, SUM_PITCH, wmma::mem_row_major);
                for (int e = 0; e < other.num_elements; ++e) other.x[e] += sum[i][j].x[e];
                wmma::store_matrix_sync(at, other, SUM_PITCH, wmma::mem_row_major);
            }
    __syncthreads();
    for (int i = threadIdx.x; i < BM * BN; i += THREADS) {
        const int row = block_row + i / BN, column = block_column + i % BN;
        if (row < M && column < N) out[size_t(row) * N + column] = __float2half(sums[i / BN * SUM_PITCH + i % BN]);
    }
}
