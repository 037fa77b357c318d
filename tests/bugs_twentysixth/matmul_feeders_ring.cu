/* evoengine
name: feeders_ring
precision: fp16
summary: feeder warps fill a ring of swizzled tiles with cp.async, four other warps multiply them; named barriers between
tunables:
  TILE_M: [64, 128]
  TILE_N: [64, 128]
  SLOTS: [3, 2, 4]       # tiles that may be under way
  FEEDERS: [2, 1, 4]     # warps that copy
  GROUP: [4, 8, 1]       # rows of tiles that neighbouring blocks share
let:
  TILE_K: 64
  TILES: ceil_div(M, TILE_M) * ceil_div(N, TILE_N)
  RING_BYTES: 2 * SLOTS * TILE_K * (TILE_M + TILE_N)
require:
  - RING_BYTES <= MAX_SHARED_BYTES
launches:
  - kernel: multiply_from_ring
    grid: [TILES]
    block: [128 + 32 * FEEDERS]
    shared: RING_BYTES
    args: [a, b, out, M, N, K]
*/
// The block has two roles. Feeders only copy, so their wait for memory holds up no multiplication; the four multiplying
// warps share a tile as a square of 2 x 2. A slot of the ring has one barrier that says it is full, one that says it is empty.
#include <cuda_fp16.h>

constexpr int TILE_K = 64;
constexpr int MULTIPLIERS = 128, FEEDING = 32 * FEEDERS, EVERYONE = MULTIPLIERS + FEEDING;
constexpr int SLOT_A = TILE_M * TILE_K, SLOT_B = TILE_K * TILE_N;
constexpr int FULL = 1, EMPTY = FULL + SLOTS;               // barrier 0 is that of __syncthreads
constexpr int BLOCKS_M = TILE_M / 32, BLOCKS_N = TILE_N / 16;   // of 16 x 8, in the part of a warp

__device__ __forceinline__ void bar_wait(int barrier) {
    asm volatile("bar.sync %0, %1;" ::"r"(barrier), "n"(EVERYONE) : "memory");
}
__device__ __forceinline__ void bar_announce(int barrier) {
    asm volatile("bar.arrive %0, %1;" ::"r"(barrier), "n"(EVERYONE) : "memory");
}
template <int PENDING> __device__ __forceinline__ void copies_done() {
    asm volatile("cp.async.wait_group %0;" ::"n"(PENDING) : "memory");
}
__device__ __forceinline__ unsigned shared_address(const void* p) { return static_cast<unsigned>(__cvta_generic_to_shared(p)); }

// Where a piece of eight halves lies in a tile: the piece is exchanged within its row, so that eight rows of
// one column are in different banks.
template <int COLUMNS> __device__ __forceinline__ int swizzled(int row, int piece) {
    return row * COLUMNS + (piece ^ (row % 8)) * 8;
}

// Copies a ROWS x COLUMNS tile with its corner at (row0, column0); outside of the matrix it has zeros.
template <int ROWS, int COLUMNS>
__device__ __forceinline__ void feed_tile(__half* tile, const __half* __restrict__ matrix, int rows, int columns, int row0, int column0, int feeder) {
    constexpr int PIECES = COLUMNS / 8;
    for (int i = feeder; i < ROWS * PIECES; i += FEEDING) {
        const int row = row0 + i / PIECES, column = column0 + i % PIECES * 8;
        __half* target = tile + swizzled<COLUMNS>(i / PIECES, i % PIECES);
        if (columns % 8 == 0) {
            const bool inside = row < rows && column < columns;
            const __half* source = inside ? matrix + size_t(row) * columns + column : matrix;
            asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(target)), "l"(source), "r"(inside ? 16 : 0) : "memory");
        } else {   // rows are not aligned for copies of 16 bytes
            for (int j = 0; j < 8; ++j)
                target[j] = row < rows && column + j < columns ? matrix[size_t(row) * columns + column + j] : __half(0.0f);
        }
    }
}

__device__ __forceinline__ void load_a(unsigned (&r)[4], const __half* p) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];" : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(shared_address(p)) : "memory");
}
__device__ __forceinline__ void load_b(unsigned (&r)[4], const __half* p) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];" : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(shared_address(p)) : "memory");
}
__device__ __forceinline__ void mma(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

__global__ void __launch_bounds__(EVERYONE)
multiply_from_ring(const __half* __restrict__ a, const __half* __restrict__ b, __half* __restrict__ out, int M, int N, int K) {
    extern __shared__ __align__(128) __half ring[];
    __half* ring_a = ring;
    __half* ring_b = ring + SLOTS * SLOT_A;
    // Blocks that run together take tiles of GROUP rows column by column: they read the same parts of a and b.
    const int tiles_m = (M + TILE_M - 1) / TILE_M, tiles_n = (N + TILE_N - 1) / TILE_N;
    const int in_group = blockIdx.x % (GROUP * tiles_n), first = blockIdx.x / (GROUP * tiles_n) * GROUP;
    const int height = min(GROUP, tiles_m - first);
    const int row0 = (first + in_group % height) * TILE_M, column0 = in_group / height * TILE_N;
    const int steps = (K + TILE_K - 1) / TILE_K;

    if (threadIdx.x >= MULTIPLIERS) {
        const int feeder = threadIdx.x - MULTIPLIERS;
        for (int step = 0; step < steps; ++step) {
            const int slot = step % SLOTS;
            if (step >= SLOTS) bar_wait(EMPTY + slot);
            feed_tile<TILE_M, TILE_K>(ring_a + slot * SLOT_A, a, M, K, row0, step * TILE_K, feeder);
            feed_tile<TILE_K, TILE_N>(ring_b + slot * SLOT_B, b, K, N, step * TILE_K, column0, feeder);
            asm volatile("cp.async.commit_group;" ::: "memory");
            if (step > 0) {   // the tile before has had the time of this one's issue to arrive
                copies_done<1>();
                bar_announce(FULL + (step - 1) % SLOTS);
            }
        }
        copies_done<0>();
        bar_announce(FULL + (steps - 1) % SLOTS);
        return;
    }

    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int warp_row = warp / 2 * (TILE_M / 2), warp_column = warp % 2 * (TILE_N / 2);
    float sum[BLOCKS_M][BLOCKS_N][4] = {};
    for (int step = 0; step < steps; ++step) {
        const int slot = step % SLOTS;
        const __half* tile_a = ring_a + slot * SLOT_A;
        const __half* tile_b = ring_b + slot * SLOT_B;
        bar_wait(FULL + slot);
#pragma unroll
        for (int k = 0; k < TILE_K; k += 16) {
            unsigned rows[BLOCKS_M][4];
#pragma unroll
            for (int i = 0; i < BLOCKS_M; ++i)
                load_a(rows[i], tile_a + swizzled<TILE_K>(warp_row + i * 16 + lane % 16, k / 8 + lane / 16));
#pragma unroll
            for (int j = 0; j < BLOCKS_N; j += 2) {   // one load has the columns of two blocks
                unsigned columns[4];
                load_b(columns, tile_b + swizzled<TILE_N>(k + lane % 16, (warp_column + j * 8) / 8 + lane / 16));
#pragma unroll
                for (int i = 0; i < BLOCKS_M; ++i) {
                    mma(sum[i][j], rows[i], columns[0], columns[1]);
                    mma(sum[i][j + 1], rows[i], columns[2], columns[3]);
                }
            }
        }
        if (step + SLOTS < steps) bar_announce(EMPTY + slot);   // nobody waits for the last ones
    }

#pragma unroll
    for (int i = 0; i < BLOCKS_M; ++i)
#pragma unroll
        for (int j = 0; j < BLOCKS_N; ++j)
#pragma unroll
            for (int e = 0; e < 4; ++e) {
                const int row = row0 + warp_row + i * 16 + lane / 4 + e / 2 * 8;
                const int column = column0 + warp_column + j * 8 + lane % 4 * 2 + e % 2;
                if (row < M && column < N) out[size_t(row) * N + column] = __float2half_rn(sum[i][j][e]);
            }
}
