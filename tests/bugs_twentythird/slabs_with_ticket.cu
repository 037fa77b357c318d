/* evoengine
name: slabs_with_ticket
precision: fp16
summary: K is cut into slices; every block leaves its part in a slab, the last one of a tile adds them up
tunables:
  TILE_M: [64, 32]
  TILE_N: [64, 32]
  TILE_K: [32, 16]
  SLICES: [4, 2, 3, 8]
let:
  TILES: ceil_div(M, TILE_M) * ceil_div(N, TILE_N)
  USED: SLICES if TILES < 2 * SM_COUNT else 1      # enough tiles fill the device by themselves
  DEPTH: round_up(ceil_div(K, USED), TILE_K)
scratch:
  slabs: {dtype: float32, shape: [USED, M, N]}
  tickets: {dtype: int32, shape: [TILES], init: 0}
launches:
  - kernel: SlicedGemm
    grid: ["ceil_div(N, TILE_N)", "ceil_div(M, TILE_M)", USED]
    block: [128]
    args: [a, b, out, slabs, tickets, M, N, K, DEPTH]
*/
#include <cuda_fp16.h>

typedef unsigned int u32;
#define UNROLL _Pragma("unroll")

static constexpr int kThreads = 128;
static constexpr int kPitch = TILE_K + 8;                 // halves of a row of either tile in shared memory
static constexpr int kRowsPerWarp = TILE_M / 2, kColsPerWarp = TILE_N / 2;
static constexpr int kMi = kRowsPerWarp / 16, kNi = kColsPerWarp / 8;
static constexpr int kPiecesA = (TILE_M * TILE_K / 8 + kThreads - 1) / kThreads;
static constexpr int kPiecesB = (TILE_N * TILE_K / 8 + kThreads - 1) / kThreads;

union Piece {
    uint4 whole;
    __half part[8];
};

// Eight neighbours of a row of the matrix; what is outside counts as zero.
__device__ __forceinline__ Piece ReadPiece(const __half* __restrict__ mat, int nRows, int nCols, int row, int col) {
    Piece p;
    p.whole = make_uint4(0u, 0u, 0u, 0u);
    if (row >= nRows) return p;
    const __half* at = mat + (size_t)row * nCols + col;
    if ((nCols & 7) == 0) {
        if (col < nCols) p.whole = __ldg(reinterpret_cast<const uint4*>(at));
    } else {
        UNROLL for (int e = 0; e < 8; ++e)
            if (col + e < nCols) p.part[e] = at[e];
    }
    return p;
}

// The next tiles wait in registers while the tensor cores work on the current ones.
struct Prefetch {
    Piece fromA[kPiecesA], fromB[kPiecesB];

    __device__ __forceinline__ void load(const __half* a, const __half* b, int M, int N, int K, int m0, int n0, int k0) {
        UNROLL for (int q = 0; q < kPiecesA; ++q) {
            const int id = threadIdx.x + q * kThreads;
            fromA[q] = ReadPiece(a, M, K, m0 + id / (TILE_K / 8), k0 + id % (TILE_K / 8) * 8);
        }
        UNROLL for (int q = 0; q < kPiecesB; ++q) {
            const int id = threadIdx.x + q * kThreads;
            fromB[q] = ReadPiece(b, K, N, k0 + id % TILE_K, n0 + id / TILE_K * 8);
        }
    }

    // b is turned on its way, so that both operands of an mma have their depth side by side.
    __device__ __forceinline__ void store(__half* tileA, __half* tileB) const {
        UNROLL for (int q = 0; q < kPiecesA; ++q) {
            const int id = threadIdx.x + q * kThreads;
            if (id < TILE_M * TILE_K / 8)
                *reinterpret_cast<uint4*>(tileA + id / (TILE_K / 8) * kPitch + id % (TILE_K / 8) * 8) = fromA[q].whole;
        }
        UNROLL for (int q = 0; q < kPiecesB; ++q) {
            const int id = threadIdx.x + q * kThreads;
            if (id < TILE_N * TILE_K / 8)
                UNROLL for (int e = 0; e < 8; ++e) tileB[(id / TILE_K * 8 + e) * kPitch + id % TILE_K] = fromB[q].part[e];
        }
    }
};

__device__ __forceinline__ u32 Two(const __half* p) { return *reinterpret_cast<const u32*>(p); }

__device__ __forceinline__ void MultiplyTiles(float (&sum)[kMi][kNi][4], const __half* tileA, const __half* tileB, int group, int quad) {
    UNROLL for (int k = 0; k < TILE_K; k += 16) {
        u32 fragB[kNi][2];
        UNROLL for (int j = 0; j < kNi; ++j) {
            const __half* p = tileB + (j * 8 + group) * kPitch + k + quad * 2;
            fragB[j][0] = Two(p);
            fragB[j][1] = Two(p + 8);
        }
        UNROLL for (int i = 0; i < kMi; ++i) {
            const __half* p = tileA + (i * 16 + group) * kPitch + k + quad * 2;
            const u32 x0 = Two(p), x1 = Two(p + 8 * kPitch), x2 = Two(p + 8), x3 = Two(p + 8 * kPitch + 8);
            UNROLL for (int j = 0; j < kNi; ++j)
                asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                             : "+f"(sum[i][j][0]), "+f"(sum[i][j][1]), "+f"(sum[i][j][2]), "+f"(sum[i][j][3])
                             : "r"(x0), "r"(x1), "r"(x2), "r"(x3), "r"(fragB[j][0]), "r"(fragB[j][1]));
        }
    }
}

__global__ void __launch_bounds__(kThreads)
SlicedGemm(const __half* __restrict__ a, const __half* __restrict__ b, __half* __restrict__ out,
           float* slabs, int* tickets, int M, int N, int K, int depth) {
    __shared__ __align__(16) __half tileA[2][TILE_M * kPitch];
    __shared__ __align__(16) __half tileB[2][TILE_N * kPitch];
    __shared__ int arrived;
    const int m0 = blockIdx.y * TILE_M, n0 = blockIdx.x * TILE_N, slice = blockIdx.z;
    const int warp = threadIdx.x >> 5, group = (threadIdx.x & 31) >> 2, quad = threadIdx.x & 3;
    const int warpRow = (warp >> 1) * kRowsPerWarp, warpCol = (warp & 1) * kColsPerWarp;
    const int kBegin = slice * depth, kEnd = min(kBegin + depth, K);

    float sum[kMi][kNi][4] = {};
    Prefetch next;
    next.load(a, b, M, N, K, m0, n0, kBegin);
    int cur = 0;
    for (int k0 = kBegin; k0 < kEnd; k0 += TILE_K, cur ^= 1) {
        next.store(tileA[cur], tileB[cur]);
        __syncthreads();     // one is enough: the other pair of tiles is filled meanwhile
        if (k0 + TILE_K < kEnd) next.load(a, b, M, N, K, m0, n0, k0 + TILE_K);
        MultiplyTiles(sum, tileA[cur] + warpRow * kPitch, tileB[cur] + warpCol * kPitch, group, quad);
    }

    const size_t plane = (size_t)M * N;
    const int row = m0 + warpRow + group, col = n0 + warpCol + quad * 2;
#define EACH_ELEMENT                                                                     \
    UNROLL for (int i = 0; i < kMi; ++i) UNROLL for (int j = 0; j < kNi; ++j)            \
        UNROLL for (int e = 0; e < 4; ++e)                                               \
            if (const int r = row + i * 16 + e / 2 * 8, c = col + j * 8 + e % 2; r < M && c < N)

    EACH_ELEMENT slabs[slice * plane + (size_t)r * N + c] = sum[i][j][e];
    __threadfence();
    __syncthreads();     // the slab of the block is complete before it takes its ticket
    if (threadIdx.x == 0) arrived = atomicAdd(&tickets[blockIdx.y * gridDim.x + blockIdx.x], 1);
    __syncthreads();
    if (arrived != (int)gridDim.z - 1) return;
    __threadfence();

    // The last block still has its own part in registers and fetches those of the others.
    for (int s = 0; s < (int)gridDim.z; ++s) {
        if (s == slice) continue;
        EACH_ELEMENT sum[i][j][e] += __ldcg(&slabs[s * plane + (size_t)r * N + c]);
    }
    EACH_ELEMENT out[(size_t)r * N + c] = __float2half_rn(sum[i][j][e]);
}
