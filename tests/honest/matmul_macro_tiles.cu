/* evoengine
name: matmul_macro_tiles
precision: fp16
summary: WMMA written with macros, nine tunables, blocks grouped for L2, a static shared tile of up to 48 KiB
tunables:
  BM: [64, 128]
  BN: [128, 64]
  BK: [32, 64, 16]
  WARPS_M: [2, 4]
  WARPS_N: [2, 4]
  PAD: [8, 16]
  GROUP: [8, 4, 1]        # rows of blocks that share columns of b
  UNROLL: [1, 2, 4]
  CACHED_LOADS: [1, 0]
let:
  ACROSS: ceil_div(N, BN)
  DOWN: ceil_div(M, BM)
require:
  - BM % (16 * WARPS_M) == 0 and BN % (16 * WARPS_N) == 0
  - BM * BN <= 4096 * WARPS_M * WARPS_N
  - 2 * BM * (BK + PAD) + 2 * BK * (BN + PAD) + 1024 * WARPS_M * WARPS_N <= 49152
launches:
  - kernel: matmul
    grid: [ACROSS * DOWN]
    block: ["32 * WARPS_M * WARPS_N"]
    args: [a, b, out, M, N, K, ACROSS, DOWN]
*/
#include <cuda_fp16.h>
#include <mma.h>

#define THREADS (32 * WARPS_M * WARPS_N)
#define TILES_M (BM / WARPS_M / 16)
#define TILES_N (BN / WARPS_N / 16)
#define FRAGMENT(use, type, ...) nvcuda::wmma::fragment<nvcuda::wmma::use, 16, 16, 16, type, ##__VA_ARGS__>
#define LOAD(p) (CACHED_LOADS ? __ldg(p) : __ldcg(p))
#define PRAGMA(x) _Pragma(#x)
#define UNROLLED(n) PRAGMA(unroll n)
#define FILL(tile, pitch, rows, columns, source, row, column, height, width)                                              \
    for (int i_ = threadIdx.x; i_ < (rows) * (columns); i_ += THREADS) {                                                   \
        const int r_ = i_ / (columns), c_ = i_ % (columns);                                                                \
        (tile)[r_ * (pitch) + c_] = (row) + r_ < (height) && (column) + c_ < (width)                                       \
            ? LOAD((source) + size_t((row) + r_) * (width) + (column) + c_) : __half(0.0f);                                \
    }

__global__ void __launch_bounds__(THREADS)
matmul(const __half* __restrict__ a, const __half* __restrict__ b, __half* __restrict__ out, int M, int N, int K, int across, int down) {
    __shared__ __align__(32) __half ta[BM * (BK + PAD)];
    __shared__ __align__(32) __half tb[BK * (BN + PAD)];
    __shared__ __align__(32) float tc[THREADS / 32][256];
    const int in_group = GROUP * across, group = blockIdx.x / in_group, height = min(GROUP, down - group * GROUP);
    const int block_row = group * GROUP + blockIdx.x % in_group % height, block_column = blockIdx.x % in_group / height;
    const int row0 = block_row * BM, column0 = block_column * BN;
    const int warp = threadIdx.x / 32, wm = warp / WARPS_N * TILES_M * 16, wn = warp % WARPS_N * TILES_N * 16;

    FRAGMENT(accumulator, float) c[TILES_M][TILES_N];
#pragma unroll
    for (int i = 0; i < TILES_M * TILES_N; ++i) nvcuda::wmma::fill_fragment(c[i / TILES_N][i % TILES_N], 0.0f);
    for (int k0 = 0; k0 < K; k0 += BK) {
        FILL(ta, BK + PAD, BM, BK, a, row0, k0, M, K)
        FILL(tb, BN + PAD, BK, BN, b, k0, column0, K, N)
        __syncthreads();
        UNROLLED(UNROLL)
        for (int k = 0; k < BK; k += 16) {
            FRAGMENT(matrix_b, __half, nvcuda::wmma::row_major) y[TILES_N];
#pragma unroll
            for (int j = 0; j < TILES_N; ++j) nvcuda::wmma::load_matrix_sync(y[j], tb + k * (BN + PAD) + wn + j * 16, BN + PAD);
#pragma unroll
            for (int i = 0; i < TILES_M; ++i) {
                FRAGMENT(matrix_a, __half, nvcuda::wmma::row_major) x;
                nvcuda::wmma::load_matrix_sync(x, ta + (wm + i * 16) * (BK + PAD) + k, BK + PAD);
#pragma unroll
                for (int j = 0; j < TILES_N; ++j) nvcuda::wmma::mma_sync(c[i][j], x, y[j], c[i][j]);
            }
        }
        __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < TILES_M * TILES_N; ++i) {
        nvcuda::wmma::store_matrix_sync(tc[warp], c[i / TILES_N][i % TILES_N], 16, nvcuda::wmma::mem_row_major);
        __syncwarp();
        for (int e = threadIdx.x % 32; e < 256; e += 32) {
            const int r = row0 + wm + i / TILES_N * 16 + e / 16, n = column0 + wn + i % TILES_N * 16 + e % 16;
            if (r < M && n < N) __stcs(out + size_t(r) * N + n, __float2half(tc[warp][e]));
        }
        __syncwarp();
    }
}
