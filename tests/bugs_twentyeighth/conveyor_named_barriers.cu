/* evoengine
name: conveyor_named_barriers
precision: fp16
summary: loader warps feed a ring of tiles to multiplying warps over named barriers; a block takes several output tiles
tunables:
  TILES_EACH: [2, 4, 1]      # output tiles that a block computes one after the other
  DEPTH: [32, 64]            # depth of one step along K
  RING: [3, 2, 4]            # slots of the ring
  BAND: [4, 8, 1]            # rows of tiles that are walked together
let:
  TILES: ceil_div(M, 64) * ceil_div(N, 64)
  SLOT_BYTES: 2*64*(DEPTH + 8) + 2*DEPTH*(64 + 8)
require:
  - RING * SLOT_BYTES <= MAX_SHARED_BYTES
launches:
  - kernel: conveyor
    grid: ["ceil_div(TILES, TILES_EACH)"]
    block: [192]
    shared: RING * SLOT_BYTES
    args: [a, b, out, M, N, K]
*/
// Two warps only load and four only multiply. A step's pieces of `a` and `b` lie in one slot of a ring; the ring runs on
// from one output tile to the next, so the loaders are ahead even while the others store their results.
#include <cuda_fp16.h>

constexpr int TILE = 64, workers = 128, loaders = 64, everyone = workers + loaders;
constexpr int pitchA = DEPTH + 8, pitchB = TILE + 8;      // eight halves more: no bank conflicts in ldmatrix
constexpr int slotHalves = TILE * pitchA + DEPTH * pitchB;

// Barrier 0 is that of __syncthreads; every slot has one barrier that tells it is full and one that tells it is free.
__device__ __forceinline__ int fullBarrier(int slot) { return 1 + slot; }
__device__ __forceinline__ int freeBarrier(int slot) { return 1 + RING + slot; }
__device__ __forceinline__ void waitAt(int barrier) { asm volatile("bar.sync %0, %1;" ::"r"(barrier), "n"(everyone) : "memory"); }
__device__ __forceinline__ void arriveAt(int barrier) { asm volatile("bar.arrive %0, %1;" ::"r"(barrier), "n"(everyone) : "memory"); }

struct TilePlace { int row, column; };

// Tiles go down a band of BAND rows of tiles before they go on to the next column, so that blocks that run together
// share more of `a` and `b` in the L2 cache. The last band may be lower.
__device__ __forceinline__ TilePlace placeOf(int tile, int tilesDown, int tilesAcross) {
    const int bandTiles = BAND * tilesAcross;
    const int band = tile / bandTiles, within = tile % bandTiles;
    const int height = min(BAND, tilesDown - band * BAND);
    return {(band * BAND + within % height) * TILE, within / height * TILE};
}

// Copies a box of a row-major matrix to shared memory, with zeros for what lies outside the matrix.
template <int ROWS, int COLUMNS, int PITCH>
__device__ __forceinline__ void copyBox(__half* box, const __half* __restrict__ matrix, int rows, int columns, int row0, int column0) {
    const bool wholePieces = columns % 8 == 0;            // else rows are not aligned to 16 bytes
    for (int piece = threadIdx.x - workers; piece < ROWS * COLUMNS / 8; piece += loaders) {
        const int r = piece / (COLUMNS / 8), c = piece % (COLUMNS / 8) * 8;
        const int row = row0 + r, column = column0 + c;
        if (wholePieces) {
            const bool inside = row < rows && column < columns;
            const __half* from = inside ? matrix + size_t(row) * columns + column : matrix;
            const unsigned to = __cvta_generic_to_shared(box + r * PITCH + c);
            asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(inside ? 16 : 0) : "memory");
        } else {
            for (int i = 0; i < 8; ++i)
                box[r * PITCH + c + i] = row < rows && column + i < columns ? matrix[size_t(row) * columns + column + i] : __half(0.0f);
        }
    }
}

__global__ void __launch_bounds__(everyone)
conveyor(const __half* __restrict__ a, const __half* __restrict__ b, __half* __restrict__ out, int M, int N, int K) {
    extern __shared__ __align__(128) __half ring[];
    const int tilesDown = (M + TILE - 1) / TILE, tilesAcross = (N + TILE - 1) / TILE, tiles = tilesDown * tilesAcross;
    const int stepsPerTile = (K + DEPTH - 1) / DEPTH;
    const int ownTiles = (tiles - int(blockIdx.x) + int(gridDim.x) - 1) / int(gridDim.x);
    const int allSteps = ownTiles * stepsPerTile;

    if (threadIdx.x >= workers) {
        for (int step = 0; step < allSteps; ++step) {
            const int slot = step % RING;
            const TilePlace place = placeOf(blockIdx.x + step / stepsPerTile * gridDim.x, tilesDown, tilesAcross);
            const int k = step % stepsPerTile * DEPTH;
            if (step >= RING) waitAt(freeBarrier(slot));
            __half* boxA = ring + slot * slotHalves;
            copyBox<TILE, DEPTH, pitchA>(boxA, a, M, K, place.row, k);
            copyBox<DEPTH, TILE, pitchB>(boxA + TILE * pitchA, b, K, N, k, place.column);
            asm volatile("cp.async.commit_group;" ::: "memory");
            // A step is announced one step later, so that two of them are on their way at a time.
            if (step > 0) {
                asm volatile("cp.async.wait_group 1;" ::: "memory");
                arriveAt(fullBarrier((step - 1) % RING));
            }
        }
        asm volatile("cp.async.wait_group 0;" ::: "memory");
        arriveAt(fullBarrier((allSteps - 1) % RING));
        return;
    }

    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int warpRow = warp / 2 * 32, warpColumn = warp % 2 * 32;
    for (int t = 0, step = 0; t < ownTiles; ++t) {
        float sums[2][4][4] = {};
        for (int s = 0; s < stepsPerTile; ++s, ++step) {
            const int slot = step % RING;
            const __half* boxA = ring + slot * slotHalves;
            const __half* boxB = boxA + TILE * pitchA;
            waitAt(fullBarrier(slot));
#pragma unroll
            for (int d = 0; d < DEPTH; d += 16) {
                unsigned left[2][4], right[2][4];
#pragma unroll
                for (int i = 0; i < 2; ++i) {
                    const unsigned from = __cvta_generic_to_shared(boxA + (warpRow + i * 16 + lane % 16) * pitchA + d + lane / 16 * 8);
                    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                                 : "=r"(left[i][0]), "=r"(left[i][1]), "=r"(left[i][2]), "=r"(left[i][3]) : "r"(from) : "memory");
                }
#pragma unroll
                for (int j = 0; j < 2; ++j) {
                    const unsigned from = __cvta_generic_to_shared(boxB + (d + lane % 16) * pitchB + warpColumn + j * 16 + lane / 16 * 8);
                    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                                 : "=r"(right[j][0]), "=r"(right[j][1]), "=r"(right[j][2]), "=r"(right[j][3]) : "r"(from) : "memory");
                }
#pragma unroll
                for (int i = 0; i < 2; ++i)
#pragma unroll
                    for (int j = 0; j < 4; ++j) {
                        float* c = sums[i][j];
                        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                                     : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                                     : "r"(left[i][0]), "r"(left[i][1]), "r"(left[i][2]), "r"(left[i][3]), "r"(right[j / 2][j % 2 * 2]), "r"(right[j / 2][j % 2 * 2 + 1]));
                    }
            }
            // Nobody waits for a slot that is not filled again.
            if (step + RING < allSteps) arriveAt(freeBarrier(slot));
        }

        const TilePlace place = placeOf(blockIdx.x + t * gridDim.x, tilesDown, tilesAcross);
        for (int i = 0; i < 2; ++i)
            for (int j = 0; j < 4; ++j)
                for (int half = 0; half < 2; ++half) {
                    const int row = place.row + warpRow + i * 16 + lane / 4 + half * 8;
                    const int column = place.column + warpColumn + j * 8 + lane % 4 * 2;
                    if (row >= M) continue;
                    __half* to = out + size_t(row) * N + column;
                    const float x = sums[i][j][half * 2], y = sums[i][j][half * 2 + 1];
                    if (N % 2 == 0 && column < N) {
                        *reinterpret_cast<__half2*>(to) = __floats2half2_rn(x, y);
                    } else {
                        if (column < N) to[0] = __float2half_rn(x);
                        if (column + 1 < N) to[1] = __float2half_rn(y);
                    }
                }
    }
}
