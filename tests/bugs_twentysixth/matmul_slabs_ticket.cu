/* evoengine
name: slabs_ticket
precision: fp16
summary: K split into slabs, b transposed in shared memory through registers; the last block of a tile adds the slabs up
tunables:
  SLABS: [2, 4, 1, 3]
  WARPS_PER_SIDE: [2, 1]      # a block has this number of warps along M and as many along N
  BK: [32, 64]
let:
  SIDE: 32 * WARPS_PER_SIDE
  TILES_M: ceil_div(M, SIDE)
  TILES_N: ceil_div(N, SIDE)
scratch:
  slabSums: {dtype: float32, shape: [SLABS, M, N]}
  tickets: {dtype: int32, shape: [TILES_M, TILES_N], init: 0}
launches:
  - kernel: slabProduct
    grid: [TILES_N, TILES_M, SLABS]
    block: [32 * WARPS_PER_SIDE * WARPS_PER_SIDE]
    args: [a, b, slabSums, tickets, out, M, N, K]
*/
// Few tiles leave most of the device idle: here blocks share the depth of a tile as well. Each writes its sums in
// single precision; the one that draws the last ticket of the tile adds them up in a fixed order and rounds once.
#include <cuda_fp16.h>

constexpr int kThreads = 32 * WARPS_PER_SIDE * WARPS_PER_SIDE;
constexpr int kSide = 32 * WARPS_PER_SIDE;
constexpr int kWords = BK / 2;        // two halves along K are a word, as the tensor cores want them
constexpr int kPitch = kWords + 4;    // the words that a warp reads at once are in different banks
constexpr int kPiecesA = kSide * BK / 8 / kThreads;
constexpr int kPiecesB = kWords * kSide / 8 / kThreads;

union Piece { uint4 vector; __half h[8]; };

struct Tiles {
    unsigned a[kSide * kPitch];   // [row][word along K]
    unsigned b[kSide * kPitch];   // [column][word along K]
};

// Eight halves of a row, as far as they are inside of the matrix and before `limit`.
__device__ __forceinline__ Piece fetchPiece(const __half* __restrict__ matrix, int row, int rowLimit, int col, int colLimit, int stride) {
    Piece piece;
    piece.vector = make_uint4(0, 0, 0, 0);
    if (row >= rowLimit) return piece;
    const __half* source = matrix + size_t(row) * stride + col;
    if (stride % 8 == 0 && col + 8 <= colLimit) piece.vector = *reinterpret_cast<const uint4*>(source);
    else for (int i = 0; i < 8 && col + i < colLimit; ++i) piece.h[i] = source[i];
    return piece;
}

// The next step's operands wait in registers while the tensor cores work on this one's.
struct Prefetch {
    Piece a[kPiecesA];
    Piece b[kPiecesB][2];   // the same columns of two neighbouring k

    __device__ __forceinline__ void fetch(const __half* __restrict__ A, const __half* __restrict__ B, int row0, int col0, int k0, int kEnd, int M, int N, int K) {
        for (int i = 0; i < kPiecesA; ++i) {
            const int item = threadIdx.x + i * kThreads;
            a[i] = fetchPiece(A, row0 + item / (BK / 8), M, k0 + item % (BK / 8) * 8, kEnd, K);
        }
        for (int i = 0; i < kPiecesB; ++i) {
            const int item = threadIdx.x + i * kThreads;
            const int k = k0 + item % kWords * 2, col = col0 + item / kWords * 8;
            b[i][0] = fetchPiece(B, k, kEnd, col, N, N);
            b[i][1] = fetchPiece(B, k + 1, kEnd, col, N, N);
        }
    }

    __device__ __forceinline__ void stash(Tiles& tiles) const {
        for (int i = 0; i < kPiecesA; ++i) {
            const int item = threadIdx.x + i * kThreads;
            *reinterpret_cast<uint4*>(&tiles.a[item / (BK / 8) * kPitch + item % (BK / 8) * 4]) = a[i].vector;
        }
        for (int i = 0; i < kPiecesB; ++i) {
            const int item = threadIdx.x + i * kThreads;
            for (int c = 0; c < 8; ++c) {
                const unsigned low = __half_as_ushort(b[i][0].h[c]), high = __half_as_ushort(b[i][1].h[c]);
                tiles.b[(item / kWords * 8 + c) * kPitch + item % kWords] = low | high << 16;
            }
        }
    }
};

__global__ void __launch_bounds__(kThreads)
slabProduct(const __half* __restrict__ A, const __half* __restrict__ B, float* slabSums, int* tickets, __half* __restrict__ out, int M, int N, int K) {
    __shared__ __align__(16) Tiles tiles[2];
    __shared__ bool isLast;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int group = lane / 4, member = lane % 4;
    const int row0 = blockIdx.y * kSide, col0 = blockIdx.x * kSide;
    const int warpRow = warp / WARPS_PER_SIDE * 32, warpCol = warp % WARPS_PER_SIDE * 32;

    const int allSteps = (K + BK - 1) / BK;
    const int stepsPerSlab = (allSteps + SLABS - 1) / SLABS;
    const int kBegin = blockIdx.z * stepsPerSlab * BK;
    const int kEnd = min(K, kBegin + stepsPerSlab * BK);
    const int steps = kEnd > kBegin ? (kEnd - kBegin + BK - 1) / BK : 0;   // the last slab may be empty

    float acc[2][4][4] = {};
    Prefetch next;
    if (steps > 0) next.fetch(A, B, row0, col0, kBegin, kEnd, M, N, K), next.stash(tiles[0]);
    __syncthreads();
    for (int step = 0; step < steps; ++step) {
        const bool more = step + 1 < steps;
        if (more) next.fetch(A, B, row0, col0, kBegin + (step + 1) * BK, kEnd, M, N, K);
        const Tiles& now = tiles[step & 1];
#pragma unroll
        for (int w = 0; w < kWords; w += 8) {
            unsigned ra[2][4];
            for (int i = 0; i < 2; ++i) {
                const unsigned* p = &now.a[(warpRow + i * 16 + group) * kPitch + w + member];
                ra[i][0] = p[0], ra[i][1] = p[8 * kPitch], ra[i][2] = p[4], ra[i][3] = p[8 * kPitch + 4];
            }
#pragma unroll
            for (int j = 0; j < 4; ++j) {
                const unsigned* q = &now.b[(warpCol + j * 8 + group) * kPitch + w + member];
                const unsigned rb0 = q[0], rb1 = q[4];
                for (int i = 0; i < 2; ++i)
                    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                                 : "+f"(acc[i][j][0]), "+f"(acc[i][j][1]), "+f"(acc[i][j][2]), "+f"(acc[i][j][3])
                                 : "r"(ra[i][0]), "r"(ra[i][1]), "r"(ra[i][2]), "r"(ra[i][3]), "r"(rb0), "r"(rb1));
            }
        }
        if (more) next.stash(tiles[(step + 1) & 1]);
        __syncthreads();
    }

    float* mine = slabSums + size_t(blockIdx.z) * M * N;
    for (int i = 0; i < 2; ++i)
        for (int j = 0; j < 4; ++j)
            for (int e = 0; e < 4; ++e) {
                const int row = row0 + warpRow + i * 16 + group + (e >> 1) * 8, col = col0 + warpCol + j * 8 + member * 2 + (e & 1);
                if (row < M && col < N) mine[size_t(row) * N + col] = acc[i][j][e];
            }

    __threadfence();   // the sums are visible before the ticket is drawn
    __syncthreads();
    if (threadIdx.x == 0) isLast = atomicAdd(&tickets[blockIdx.y * gridDim.x + blockIdx.x], 1) == SLABS - 1;
    __syncthreads();
    if (!isLast) return;
    __threadfence();
    for (int i = threadIdx.x; i < kSide * kSide; i += kThreads) {
        const int row = row0 + i / kSide, col = col0 + i % kSide;
        if (row >= M || col >= N) continue;
        float total = 0.0f;
        for (int z = 0; z < SLABS; ++z) total += __ldcg(&slabSums[(size_t(z) * M + row) * N + col]);
        out[size_t(row) * N + col] = __float2half_rn(total);
    }
}
