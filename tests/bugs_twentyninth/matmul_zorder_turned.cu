/* evoengine
name: matmul_zorder_turned
precision: fp16
summary: the transposed product by mma.sync, tiles in Z order inside of supertiles, turned back through shared memory
tunables:
  DEPTH: [32, 64]
let:
  TILES_M: ceil_div(M, 64)
  TILES_N: ceil_div(N, 64)
  SUPER_M: ceil_div(TILES_M, 4)
  SUPER_N: ceil_div(TILES_N, 4)
  WHOLE_A: 1 if K % 8 == 0 else 0
  WHOLE_B: 1 if N % 8 == 0 else 0
launches:
  - kernel: turnedProduct<WHOLE_A, WHOLE_B>
    grid: [16 * SUPER_M * SUPER_N]
    block: [128]
    args: [a, b, out, M, N, K, SUPER_N]
*/
#include <cuda_fp16.h>

// out^T = b^T a^T. The columns of out are the 16 rows of an mma, the rows of out its 8 columns. So b,
// which has its columns side by side, is the operand that ldmatrix turns, and a is read as it lies.
// The accumulators hold out^T; the epilogue turns them back in shared memory and stores whole chunks.

namespace {

constexpr int kTile = 64;                // rows and columns of out in a block
constexpr int kThreads = 128;            // 2 x 2 warps, each with 32 columns and 32 rows of out
constexpr int kPitchA = DEPTH + 8;       // in halves; 16 bytes more than the row, against bank conflicts
constexpr int kPitchB = kTile + 8;
constexpr int kPitchOut = kTile + 8;
constexpr int kStage = kTile * kPitchA + DEPTH * kPitchB;
constexpr int kChunks = kTile * DEPTH / 8 / kThreads;  // chunks of 8 halves of each operand, a thread

struct Position { int m, n; };

// Sixteen blocks in a row fill a supertile of 4 x 4 tiles along a Z, so that they share rows and columns in L2.
__device__ Position positionOf(int block, int superColumns) {
    const int super = block / 16;
    const int z = block % 16;
    const int x = (z & 1) | (z >> 1 & 2);
    const int y = (z >> 1 & 1) | (z >> 2 & 2);
    return {super / superColumns * 4 + y, super % superColumns * 4 + x};
}

template <int WHOLE>
__device__ uint4 fetch(const __half* matrix, int row, int column, int rows, int columns) {
    uint4 chunk = make_uint4(0, 0, 0, 0);
    if (row >= rows) return chunk;
    const __half* from = matrix + size_t(row) * columns + column;
    if (WHOLE) {
        if (column < columns) chunk = *reinterpret_cast<const uint4*>(from);
    } else {
        unsigned words[4] = {0, 0, 0, 0};
#pragma unroll
        for (int j = 0; j < 8; ++j)
            if (column + j < columns)
                words[j / 2] |= unsigned(__half_as_ushort(from[j])) << (j % 2 * 16);
        chunk = make_uint4(words[0], words[1], words[2], words[3]);
    }
    return chunk;
}

__device__ void loadStraight(unsigned (&r)[4], const __half* p) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(unsigned(__cvta_generic_to_shared(p))) : "memory");
}

__device__ void loadTurned(unsigned (&r)[4], const __half* p) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(unsigned(__cvta_generic_to_shared(p))) : "memory");
}

__device__ void multiply(float (&d)[4], const unsigned (&left)[4], unsigned right0, unsigned right1) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(left[0]), "r"(left[1]), "r"(left[2]), "r"(left[3]), "r"(right0), "r"(right1));
}

}  // namespace

template <int WHOLE_A, int WHOLE_B>
__global__ void __launch_bounds__(kThreads)
turnedProduct(const __half* a, const __half* b, __half* out, int M, int N, int K, int superColumns) {
    __shared__ alignas(16) __half storage[2 * kStage];
    const Position tile = positionOf(blockIdx.x, superColumns);
    const int m0 = tile.m * kTile, n0 = tile.n * kTile;
    if (m0 >= M || n0 >= N) return;

    const int thread = threadIdx.x, lane = thread % 32, warp = thread / 32;
    const int warpM = warp / 2 * 32, warpN = warp % 2 * 32;
    uint4 nextA[kChunks], nextB[kChunks];

    auto pull = [&](int k) {
#pragma unroll
        for (int i = 0; i < kChunks; ++i) {
            const int chunk = thread + i * kThreads;
            nextA[i] = fetch<WHOLE_A>(a, m0 + chunk / (DEPTH / 8), k + chunk % (DEPTH / 8) * 8, M, K);
            nextB[i] = fetch<WHOLE_B>(b, k + chunk / (kTile / 8), n0 + chunk % (kTile / 8) * 8, K, N);
        }
    };
    auto put = [&](int stage) {
        __half* tileA = storage + stage * kStage;
        __half* tileB = tileA + kTile * kPitchA;
#pragma unroll
        for (int i = 0; i < kChunks; ++i) {
            const int chunk = thread + i * kThreads;
            *reinterpret_cast<uint4*>(tileA + chunk / (DEPTH / 8) * kPitchA + chunk % (DEPTH / 8) * 8) = nextA[i];
            *reinterpret_cast<uint4*>(tileB + chunk / (kTile / 8) * kPitchB + chunk % (kTile / 8) * 8) = nextB[i];
        }
    };

    float sums[2][4][4] = {};  // [16 columns of out][8 rows of out][the element of an mma]
    int stage = 0;
    pull(0);
    put(0);
    for (int k = 0; k < K; k += DEPTH) {
        __syncthreads();  // this stage is complete, and nobody reads the other one any more
        const bool more = k + DEPTH < K;
        if (more) pull(k + DEPTH);
        const __half* tileA = storage + stage * kStage;
        const __half* tileB = tileA + kTile * kPitchA;
#pragma unroll
        for (int kk = 0; kk < DEPTH; kk += 16) {
            unsigned columns[2][4], rows[2][4];
#pragma unroll
            for (int i = 0; i < 2; ++i) {
                loadTurned(columns[i], tileB + (kk + lane / 16 * 8 + lane % 8) * kPitchB
                                             + warpN + i * 16 + lane / 8 % 2 * 8);
                loadStraight(rows[i], tileA + (warpM + i * 16 + lane / 16 * 8 + lane % 8) * kPitchA
                                            + kk + lane / 8 % 2 * 8);
            }
#pragma unroll
            for (int i = 0; i < 2; ++i)
#pragma unroll
                for (int j = 0; j < 4; ++j)
                    multiply(sums[i][j], columns[i], rows[j / 2][j % 2 * 2], rows[j / 2][j % 2 * 2 + 1]);
        }
        if (more) put(stage ^ 1);
        stage ^= 1;
    }

    __syncthreads();  // the turned tile lies where the operands were
#pragma unroll
    for (int i = 0; i < 2; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j)
#pragma unroll
            for (int e = 0; e < 4; ++e) {
                const int n = warpN + i * 16 + lane / 4 + e / 2 * 8;
                const int m = warpM + j * 8 + lane % 4 * 2 + e % 2;
                storage[m * kPitchOut + n] = __float2half_rn(sums[i][j][e]);
            }
    __syncthreads();
    for (int chunk = thread; chunk < kTile * kTile / 8; chunk += kThreads) {
        const int m = chunk / (kTile / 8), n = chunk % (kTile / 8) * 8;
        if (m0 + m >= M) break;
        const __half* from = storage + m * kPitchOut + n;
        __half* to = out + size_t(m0 + m) * N + n0 + n;
        if (WHOLE_B) {
            if (n0 + n < N) *reinterpret_cast<uint4*>(to) = *reinterpret_cast<const uint4*>(from);
        } else {
            for (int j = 0; j < 8 && n0 + n + j < N; ++j) to[j] = from[j];
        }
    }
}
