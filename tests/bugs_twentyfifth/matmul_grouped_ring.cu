/* evoengine
name: matmul_grouped_ring
precision: fp16
summary: mma.sync on swizzled tiles in a ring of cp.async stages; tiles are walked in groups of rows
tunables:
  TILE_M: [64, 128]     # rows and columns of the output that a block computes
  TILE_N: [64, 128]
  STAGES: [3, 2, 4]     # tiles of each operand in shared memory
  GROUP: [4, 8, 1]      # rows of tiles that are walked together
let:
  TILES_M: ceil_div(M, TILE_M)
  TILES_N: ceil_div(N, TILE_N)
  WIDE_A: K % 8 == 0
  WIDE_B: N % 8 == 0
  STAGE_BYTES: 2 * 32 * (TILE_M + TILE_N)
require:
  - STAGES * STAGE_BYTES <= MAX_SHARED_BYTES
launches:
  - kernel: groupedMatmul<WIDE_A, WIDE_B>
    grid: [TILES_M * TILES_N]
    block: [128]
    shared: STAGES * STAGE_BYTES
    args: [a, b, out, M, N, K, TILES_M, TILES_N]
*/
// Four warps share a tile of the output, two by two. While one stage is multiplied, the next ones are
// on their way. Fragments are loaded one sub-step ahead of the tensor cores.
#include <cuda_fp16.h>

constexpr int THREADS = 128, DEPTH = 32, SUB_STEPS = DEPTH / 16;
constexpr int WARP_M = TILE_M / 2, WARP_N = TILE_N / 2;
constexpr int ROW_FRAGS = WARP_M / 16, COL_PAIRS = WARP_N / 16;

__device__ __forceinline__ unsigned sharedAddress(const void* pointer) {
    return static_cast<unsigned>(__cvta_generic_to_shared(pointer));
}

// Where 16-byte piece `piece` of row `row` begins, in halves. Eight consecutive rows of one piece lie in
// eight different groups of banks, so that ldmatrix reads them at once.
template <int COLUMNS>
__device__ __forceinline__ int slot(int row, int piece) {
    const int phase = COLUMNS >= 64 ? row % 8 : row / 2 % 4;
    return row * COLUMNS + (piece ^ phase) * 8;
}

// Brings a ROWS x COLUMNS tile of a row-major matrix to shared memory, with zeros outside the matrix.
template <bool WIDE, int ROWS, int COLUMNS>
__device__ void fillTile(__half* tile, const __half* __restrict__ matrix, int rows, int columns, int firstRow, int firstColumn) {
    constexpr int PIECES = COLUMNS / 8;
    for (int i = threadIdx.x; i < ROWS * PIECES; i += THREADS) {
        const int row = firstRow + i / PIECES, column = firstColumn + i % PIECES * 8;
        __half* target = tile + slot<COLUMNS>(i / PIECES, i % PIECES);
        if constexpr (WIDE) {
            const bool inside = row < rows && column < columns;
            const __half* source = matrix + (inside ? size_t(row) * columns + column : 0);
            asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                         ::"r"(sharedAddress(target)), "l"(source), "r"(inside ? 16 : 0) : "memory");
        } else {
            for (int e = 0; e < 8; ++e) {
                const bool inside = row < rows && column + e < columns;
                target[e] = inside ? matrix[size_t(row) * columns + column + e] : __float2half(0.0f);
            }
        }
    }
}

template <bool TRANSPOSED>
__device__ __forceinline__ void loadMatrices(unsigned (&r)[4], const __half* from) {
    if constexpr (TRANSPOSED)   // rows and columns of each 8x8 matrix change places
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(sharedAddress(from)) : "memory");
    else
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(sharedAddress(from)) : "memory");
}

__device__ __forceinline__ void multiply(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

template <bool WIDE_A, bool WIDE_B>
__global__ void __launch_bounds__(THREADS)
groupedMatmul(const __half* __restrict__ a, const __half* __restrict__ b, __half* __restrict__ out,
              int M, int N, int K, int tilesM, int tilesN) {
    extern __shared__ __align__(128) __half ring[];
    constexpr int HALVES_A = TILE_M * DEPTH, HALVES_B = DEPTH * TILE_N;

    // Blocks that run together take a few rows of tiles, column after column: they share what they read.
    const int inGroup = blockIdx.x % (GROUP * tilesN), firstOfGroup = blockIdx.x / (GROUP * tilesN) * GROUP;
    const int groupHeight = min(GROUP, tilesM - firstOfGroup);
    const int blockRow = (firstOfGroup + inGroup % groupHeight) * TILE_M;
    const int blockColumn = inGroup / groupHeight * TILE_N;

    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, steps = (K + DEPTH - 1) / DEPTH;
    const int warpRow = warp / 2 * WARP_M, warpColumn = warp % 2 * WARP_N;

    auto fetchStage = [&](int step) {
        if (step < steps) {
            __half* stage = ring + step % STAGES * (HALVES_A + HALVES_B);
            fillTile<WIDE_A, TILE_M, DEPTH>(stage, a, M, K, blockRow, step * DEPTH);
            fillTile<WIDE_B, DEPTH, TILE_N>(stage + HALVES_A, b, K, N, step * DEPTH, blockColumn);
        }
        asm volatile("cp.async.commit_group;" ::: "memory");   // an empty one too: groups count steps
    };
    for (int step = 0; step < STAGES - 1; ++step) fetchStage(step);

    float sums[ROW_FRAGS][2 * COL_PAIRS][4] = {};
    unsigned fragA[2][ROW_FRAGS][4], fragB[2][COL_PAIRS][4];
    for (int step = 0; step < steps; ++step) {
        asm volatile("cp.async.wait_group %0;" ::"n"(STAGES - 2) : "memory");
        __syncthreads();
        fetchStage(step + STAGES - 1);

        const __half* tileA = ring + step % STAGES * (HALVES_A + HALVES_B);
        const __half* tileB = tileA + HALVES_A;
        auto loadFragments = [&](int sub) {
            for (int m = 0; m < ROW_FRAGS; ++m)
                loadMatrices<false>(fragA[sub % 2][m], tileA + slot<DEPTH>(warpRow + m * 16 + lane % 16, sub * 2 + lane / 16));
            for (int n = 0; n < COL_PAIRS; ++n)
                loadMatrices<true>(fragB[sub % 2][n], tileB + slot<TILE_N>(sub * 16 + lane % 16, warpColumn / 8 + n * 2 + lane / 16));
        };
        loadFragments(0);
#pragma unroll
        for (int sub = 0; sub < SUB_STEPS; ++sub) {
            if (sub + 1 < SUB_STEPS) loadFragments(sub + 1);
            for (int m = 0; m < ROW_FRAGS; ++m)
                for (int n = 0; n < COL_PAIRS; ++n) {
                    multiply(sums[m][2 * n], fragA[sub % 2][m], fragB[sub % 2][n][0], fragB[sub % 2][n][1]);
                    multiply(sums[m][2 * n + 1], fragA[sub % 2][m], fragB[sub % 2][n][2], fragB[sub % 2][n][3]);
                }
        }
    }

    const bool pairs = N % 2 == 0;   // else every second row begins between two pairs
    for (int m = 0; m < ROW_FRAGS; ++m)
        for (int n = 0; n < 2 * COL_PAIRS; ++n)
            for (int part = 0; part < 2; ++part) {
                const int row = blockRow + warpRow + m * 16 + part * 8 + lane / 4;
                const int column = blockColumn + warpColumn + n * 8 + lane % 4 * 2;
                if (row >= M || column >= N) continue;
                __half* target = out + size_t(row) * N + column;
                const __half2 two = __floats2half2_rn(sums[m][n][2 * part], sums[m][n][2 * part + 1]);
                if (pairs) {
                    *reinterpret_cast<__half2*>(target) = two;
                    continue;
                }
                target[0] = __low2half(two);
                if (column + 1 < N) target[1] = __high2half(two);
            }
}
