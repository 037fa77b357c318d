/* evoengine
name: matmul_fp16
precision: fp16
summary: out = a @ b on WMMA tiles in shared memory, for any sizes
tunables:
  BLOCK_M: [64, 128, 32]     # rows and columns of the output that a block computes
  BLOCK_N: [64, 128, 32]
  BLOCK_K: [32, 64, 16]      # depth of one step
  WARPS_M: [2, 1, 4]         # the block's warps form a WARPS_M x WARPS_N grid over its tile
  WARPS_N: [2, 1, 4]
let:
  INPUT_BYTES: 2*BLOCK_M*(BLOCK_K + 8) + 2*BLOCK_K*(BLOCK_N + 8)
  OUTPUT_BYTES: 4*BLOCK_M*(BLOCK_N + 8)
  SHARED: max(INPUT_BYTES, OUTPUT_BYTES)
require:
  - BLOCK_M % (16 * WARPS_M) == 0 and BLOCK_N % (16 * WARPS_N) == 0
  - BLOCK_M * BLOCK_N <= 4096 * WARPS_M * WARPS_N     # the accumulators of a warp must fit its registers
  - SHARED <= MAX_SHARED_BYTES
launches:
  - kernel: matmul
    grid: ["ceil_div(N, BLOCK_N)", "ceil_div(M, BLOCK_M)"]
    block: ["WARPS_M*WARPS_N*32"]
    shared: SHARED
    args: [a, b, out, M, N, K]
*/
// A block computes one BLOCK_M x BLOCK_N tile of the output. It walks along K in steps of BLOCK_K: load a tile of `a` and
// one of `b` into shared memory, then let every warp multiply its part with tensor cores and add it up in fp32.
#include <cuda_fp16.h>
#include <mma.h>

using namespace nvcuda;

constexpr int THREADS = WARPS_M * WARPS_N * 32;
constexpr int WARP_M = BLOCK_M / WARPS_M, WARP_N = BLOCK_N / WARPS_N;    // the part of a warp
// Eight more elements a row: rows then start in different banks, and 16-byte alignment is kept.
constexpr int PITCH_A = BLOCK_K + 8, PITCH_B = BLOCK_N + 8, PITCH_OUT = BLOCK_N + 8;

// Fetches eight halves of a row-major [rows, columns] matrix, zeros outside it: a zero adds nothing to the product, so
// edge tiles need no other care.
__device__ __forceinline__ uint4 fetch(const __half* __restrict__ matrix, int rows, int columns, int row, int column) {
    // One 16-byte load needs the whole piece inside and every row aligned, which holds when the row length is a multiple of 8.
    if (columns % 8 == 0 && row < rows && column < columns)
        return *reinterpret_cast<const uint4*>(matrix + size_t(row) * columns + column);
    __align__(16) __half piece[8];
#pragma unroll
    for (int i = 0; i < 8; ++i)
        piece[i] = row < rows && column + i < columns ? matrix[size_t(row) * columns + column + i] : __float2half(0.0f);
    return *reinterpret_cast<uint4*>(piece);
}

// Fills a ROWS x COLUMNS tile in shared memory from the matrix, starting at (row, column).
template <int ROWS, int COLUMNS, int PITCH>
__device__ __forceinline__ void load_tile(__half* tile, const __half* __restrict__ matrix, int rows, int columns, int row, int column) {
    constexpr int PIECES = COLUMNS / 8;
#pragma unroll
    for (int i = threadIdx.x; i < ROWS * PIECES; i += THREADS) {
        int r = i / PIECES, c = i % PIECES * 8;
        *reinterpret_cast<uint4*>(&tile[r * PITCH + c]) = fetch(matrix, rows, columns, row + r, column + c);
    }
}

__global__ void __launch_bounds__(THREADS)
matmul(const __half* __restrict__ a, const __half* __restrict__ b, __half* __restrict__ out, int M, int N, int K) {
    extern __shared__ __align__(128) unsigned char shared[];
    __half* tile_a = reinterpret_cast<__half*>(shared);       // [BLOCK_M][PITCH_A]
    __half* tile_b = tile_a + BLOCK_M * PITCH_A;              // [BLOCK_K][PITCH_B]
    const int warp = threadIdx.x / 32;
    const int warp_row = warp / WARPS_N * WARP_M, warp_column = warp % WARPS_N * WARP_N;     // within the block's tile
    const int block_row = blockIdx.y * BLOCK_M, block_column = blockIdx.x * BLOCK_N;

    wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum[WARP_M / 16][WARP_N / 16];
#pragma unroll
    for (int i = 0; i < WARP_M / 16; ++i)
#pragma unroll
        for (int j = 0; j < WARP_N / 16; ++j) wmma::fill_fragment(sum[i][j], 0.0f);

    for (int k = 0; k < K; k += BLOCK_K) {
        load_tile<BLOCK_M, BLOCK_K, PITCH_A>(tile_a, a, M, K, block_row, k);
        load_tile<BLOCK_K, BLOCK_N, PITCH_B>(tile_b, b, K, N, k, block_column);
        __syncthreads();
#pragma unroll
        for (int d = 0; d < BLOCK_K; d += 16) {
            wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> rows[WARP_M / 16];
#pragma unroll
            for (int i = 0; i < WARP_M / 16; ++i) wmma::load_matrix_sync(rows[i], &tile_a[(warp_row + i * 16) * PITCH_A + d], PITCH_A);
#pragma unroll
            for (int j = 0; j < WARP_N / 16; ++j) {
                wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::row_major> columns;
                wmma::load_matrix_sync(columns, &tile_b[d * PITCH_B + warp_column + j * 16], PITCH_B);
#pragma unroll
                for (int i = 0; i < WARP_M / 16; ++i) wmma::mma_sync(sum[i][j], rows[i], columns, sum[i][j]);
            }
        }
        __syncthreads();     // all warps have read the tile before it is overwritten
    }

    // The layout of a fragment over the lanes is unspecified: it goes through shared memory, where rows and columns are known.
    float* tile_out = reinterpret_cast<float*>(shared);       // [BLOCK_M][PITCH_OUT], over the input tiles, which are no longer needed
#pragma unroll
    for (int i = 0; i < WARP_M / 16; ++i)
#pragma unroll
        for (int j = 0; j < WARP_N / 16; ++j)
            wmma::store_matrix_sync(&tile_out[(warp_row + i * 16) * PITCH_OUT + warp_column + j * 16], sum[i][j], PITCH_OUT, wmma::mem_row_major);
    __syncthreads();
    for (int i = threadIdx.x; i < BLOCK_M * BLOCK_N; i += THREADS) {
        int r = i / BLOCK_N, c = i % BLOCK_N;
        if (block_row + r < M && block_column + c < N)
            out[size_t(block_row + r) * N + block_column + c] = __float2half(tile_out[r * PITCH_OUT + c]);
    }
}
