/* evoengine
name: capstan_wmma_raster
precision: fp16
summary: WMMA on 64 x 64 tiles, a cp.async ring over the depth, blocks in groups of tile rows for L2
tunables:
  STAGES: [3, 2, 4]
  GROUP: [4, 8, 1]
let:
  TILES_M: ceil_div(M, 64)
  TILES_N: ceil_div(N, 64)
require:
  - STAGES >= 2
launches:
  - kernel: capstan<(K % 8 == 0), (N % 8 == 0)>
    grid: [TILES_M * TILES_N]
    block: [128]
    shared: STAGES * 2 * (64 * 40 + 32 * 72)
    args: [a, b, out, M, N, K]
*/
#include <cuda_fp16.h>
#include <mma.h>

namespace wmma = nvcuda::wmma;

namespace {

constexpr int kTile = 64;            // rows and columns of a block's tile
constexpr int kDepth = 32;           // depth of one stage
constexpr int kThreads = 128;        // 2 x 2 warps, each with 32 x 32 outputs
constexpr int kLdA = kDepth + 8;
constexpr int kLdB = kTile + 8;
constexpr int kStageHalves = kTile * kLdA + kDepth * kLdB;
constexpr int kLdScratch = 20;       // floats in a row of the epilogue's 16 x 16 patch

__device__ __forceinline__ void async_copy_16(__half* to, const __half* from, bool valid) {
    const unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(to));
    const int bytes = valid ? 16 : 0;  // the rest is filled with zeros
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;\n" ::"r"(address), "l"(from), "r"(bytes) : "memory");
}

__device__ __forceinline__ void async_commit() { asm volatile("cp.async.commit_group;\n" ::: "memory"); }

template <int PENDING>
__device__ __forceinline__ void async_wait() {
    asm volatile("cp.async.wait_group %0;\n" ::"n"(PENDING) : "memory");
}

// Brings a ROWS x COLS window of a row-major matrix into shared memory, zeros outside of the matrix.
template <int ROWS, int COLS, int LD, bool WIDE>
__device__ __forceinline__ void bring(__half* to, const __half* __restrict__ from, int rows, int cols, int row0, int col0) {
    constexpr int kChunksPerRow = COLS / 8;
    for (int chunk = threadIdx.x; chunk < ROWS * kChunksPerRow; chunk += kThreads) {
        const int r = chunk / kChunksPerRow, c = chunk % kChunksPerRow * 8;
        const int row = row0 + r, col = col0 + c;
        __half* target = to + r * LD + c;
        if constexpr (WIDE) {
            const bool valid = row < rows && col < cols;
            async_copy_16(target, valid ? from + size_t(row) * cols + col : from, valid);
        } else {
            for (int i = 0; i < 8; ++i)
                target[i] = row < rows && col + i < cols ? from[size_t(row) * cols + col + i] : __float2half(0.0f);
        }
    }
}

}  // namespace

template <bool WIDE_A, bool WIDE_B>
__global__ void __launch_bounds__(kThreads)
capstan(const __half* __restrict__ a, const __half* __restrict__ b, __half* __restrict__ out, int M, int N, int K) {
    extern __shared__ __align__(128) unsigned char arena[];
    __half* ring = reinterpret_cast<__half*>(arena);

    // Neighbouring blocks share GROUP tile rows of `a` and walk down them before they go on to the right.
    const int tiles_m = (M + kTile - 1) / kTile, tiles_n = (N + kTile - 1) / kTile;
    const int per_group = GROUP * tiles_n;
    const int first = int(blockIdx.x) / per_group * GROUP;
    const int height = min(GROUP, tiles_m - first);
    const int local = int(blockIdx.x) % per_group;
    const int row0 = (first + local % height) * kTile;
    const int col0 = local / height * kTile;

    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int warp_row = warp / 2 * 32, warp_col = warp % 2 * 32;

    wmma::fragment<wmma::accumulator, 16, 16, 16, float> sums[2][2];
    for (int i = 0; i < 2; ++i)
        for (int j = 0; j < 2; ++j) wmma::fill_fragment(sums[i][j], 0.0f);

    auto stage = [&](int step) {
        __half* slot = ring + step % STAGES * kStageHalves;
        bring<kTile, kDepth, kLdA, WIDE_A>(slot, a, M, K, row0, step * kDepth);
        bring<kDepth, kTile, kLdB, WIDE_B>(slot + kTile * kLdA, b, K, N, step * kDepth, col0);
    };

    const int steps = (K + kDepth - 1) / kDepth;
    for (int s = 0; s < STAGES - 1; ++s) {
        if (s < steps) stage(s);
        async_commit();
    }

    for (int step = 0; step < steps; ++step) {
        async_wait<STAGES - 2>();
        __syncthreads();  // the stage is complete for all, and nobody reads the slot that is filled next
        if (step + STAGES - 1 < steps) stage(step + STAGES - 1);
        async_commit();  // also when empty: the count of groups stays the same

        const __half* tile_a = ring + step % STAGES * kStageHalves;
        const __half* tile_b = tile_a + kTile * kLdA;
#pragma unroll
        for (int k = 0; k < kDepth; k += 16) {
            wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> left[2];
            wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::row_major> right[2];
            for (int i = 0; i < 2; ++i) wmma::load_matrix_sync(left[i], tile_a + (warp_row + 16 * i) * kLdA + k, kLdA);
            for (int j = 0; j < 2; ++j) wmma::load_matrix_sync(right[j], tile_b + k * kLdB + warp_col + 16 * j, kLdB);
            for (int i = 0; i < 2; ++i)
                for (int j = 0; j < 2; ++j) wmma::mma_sync(sums[i][j], left[i], right[j], sums[i][j]);
        }
    }
    async_wait<0>();
    __syncthreads();  // the ring becomes the warps' patches

    float* patch = reinterpret_cast<float*>(arena) + warp * 16 * kLdScratch;
    for (int i = 0; i < 2; ++i) {
        for (int j = 0; j < 2; ++j) {
            wmma::store_matrix_sync(patch, sums[i][j], kLdScratch, wmma::mem_row_major);
            __syncwarp();
            for (int e = lane; e < 256; e += 32) {
                const int row = row0 + warp_row + 16 * i + e / 16;
                const int col = col0 + warp_col + 16 * j + e % 16;
                if (row < M && col < N) out[size_t(row) * N + col] = __float2half(patch[e / 16 * kLdScratch + e % 16]);
            }
            __syncwarp();
        }
    }
}
