/* evoengine
name: product_last_arrival
precision: fp16
summary: the depth is shared out among blocks; the last one of a tile to arrive adds up the partial sums
tunables:
  MAX_SPLITS: [3, 4, 2, 1]
let:
  TILES_M: ceil_div(M, 64)
  TILES_N: ceil_div(N, 64)
  # a large product has enough tiles to fill the device without any split
  SPLITS: MAX_SPLITS if TILES_M * TILES_N <= SM_COUNT else 1
  DEPTH: round_up(ceil_div(K, SPLITS), 32)
scratch:
  partial: {dtype: float32, shape: [TILES_M * TILES_N, SPLITS, 4096]}
  tickets: {dtype: int32, shape: [TILES_M * TILES_N], init: 0}
launches:
  - kernel: productLastArrival<SPLITS>
    grid: [TILES_N, TILES_M, SPLITS]
    block: [128]
    args: [a, b, out, partial, tickets, M, N, K, DEPTH]
*/
#include <cuda_fp16.h>

namespace tile {
constexpr int rows = 64, cols = 64, depth = 32, threads = 128;
constexpr int pitch = depth + 8, words = pitch / 2;   // the eight rows of a fragment fall into different banks
}

struct Stage {
    __half a[tile::rows * tile::pitch];        // [row][k]
    unsigned bt[tile::cols * tile::words];     // [column][pair of k]: what a lane needs for mma is one word
};

// Eight neighbours of a row. Beyond `limit` they are zero, which adds nothing.
__device__ __forceinline__ uint4 loadEight(const __half* row, int first, int limit, bool aligned) {
    if (aligned && first + 8 <= limit) return __ldg(reinterpret_cast<const uint4*>(row + first));
    __align__(16) __half piece[8];
    for (int i = 0; i < 8; ++i) piece[i] = first + i < limit ? row[first + i] : __ushort_as_half(0);
    return *reinterpret_cast<const uint4*>(piece);
}

// What a thread carries from global memory while the previous step is multiplied.
struct Freight {
    uint4 a[2];
    uint4 b[2];

    __device__ __forceinline__ void fetch(const __half* A, const __half* B, int M, int N, int K, int row0, int col0, int k0, int kEnd) {
        const uint4 none = make_uint4(0, 0, 0, 0);
        const int aRow = row0 + threadIdx.x / 4, aCol = k0 + threadIdx.x % 4 * 8;
        for (int p = 0; p < 2; ++p)
            a[p] = aRow + p * 32 < M ? loadEight(A + size_t(aRow + p * 32) * K, aCol, kEnd, K % 8 == 0) : none;
        const int bRow = k0 + threadIdx.x / 8 * 2, bCol = col0 + threadIdx.x % 8 * 8;
        for (int p = 0; p < 2; ++p)
            b[p] = bRow + p < kEnd ? loadEight(B + size_t(bRow + p) * N, bCol, N, N % 8 == 0) : none;
    }

    __device__ __forceinline__ void unload(Stage& s) const {
        const int r = threadIdx.x / 4, c = threadIdx.x % 4 * 8;
        for (int p = 0; p < 2; ++p) *reinterpret_cast<uint4*>(&s.a[(r + p * 32) * tile::pitch + c]) = a[p];
        const int pair = threadIdx.x / 8, group = threadIdx.x % 8;
        const unsigned upper[4] = {b[0].x, b[0].y, b[0].z, b[0].w}, lower[4] = {b[1].x, b[1].y, b[1].z, b[1].w};
        // Neighbouring groups of columns are a multiple of 32 words apart: the XOR moves them to other banks.
        const int swizzled = pair ^ (group & 3) << 2;
        for (int i = 0; i < 4; ++i) {
            const int column = group * 8 + 2 * i;
            s.bt[column * tile::words + swizzled] = __byte_perm(upper[i], lower[i], 0x5410);
            s.bt[(column + 1) * tile::words + swizzled] = __byte_perm(upper[i], lower[i], 0x7632);
        }
    }
};

__device__ __forceinline__ void mma16816(float* c, const unsigned* a, unsigned b0, unsigned b1) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

template <int Splits>
__global__ void __launch_bounds__(tile::threads)
productLastArrival(const __half* __restrict__ A, const __half* __restrict__ B, __half* __restrict__ C, float* partial, int* tickets,
                   int M, int N, int K, int depthPerSplit) {
    __shared__ __align__(16) Stage stages[2];
    __shared__ bool isLast;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int group = lane / 4, quad = lane % 4;
    const int warpRow = warp / 2 * 32, warpCol = warp % 2 * 32;
    const int row0 = blockIdx.y * tile::rows, col0 = blockIdx.x * tile::cols;
    const int kBegin = blockIdx.z * depthPerSplit, kEnd = min(kBegin + depthPerSplit, K);
    const int steps = max(kEnd - kBegin + tile::depth - 1, 0) / tile::depth;    // none for a split beyond the end

    float acc[2][4][4] = {};
    Freight freight;
    if (steps > 0) freight.fetch(A, B, M, N, K, row0, col0, kBegin, kEnd);
    if (steps > 0) freight.unload(stages[0]);
    __syncthreads();
    for (int step = 0; step < steps; ++step) {
        const Stage& now = stages[step & 1];
        const bool hasNext = step + 1 < steps;
        if (hasNext) freight.fetch(A, B, M, N, K, row0, col0, kBegin + (step + 1) * tile::depth, kEnd);
#pragma unroll
        for (int kk = 0; kk < tile::depth; kk += 16) {
            unsigned fa[2][4];
            for (int i = 0; i < 2; ++i) {
                const __half* at = &now.a[(warpRow + i * 16 + group) * tile::pitch + kk + quad * 2];
                fa[i][0] = *reinterpret_cast<const unsigned*>(at);
                fa[i][1] = *reinterpret_cast<const unsigned*>(at + 8 * tile::pitch);
                fa[i][2] = *reinterpret_cast<const unsigned*>(at + 8);
                fa[i][3] = *reinterpret_cast<const unsigned*>(at + 8 * tile::pitch + 8);
            }
            for (int j = 0; j < 4; ++j) {
                const int column = warpCol + j * 8 + group, flip = (column >> 3 & 3) << 2, pair = kk / 2 + quad;
                const unsigned b0 = now.bt[column * tile::words + (pair ^ flip)];
                const unsigned b1 = now.bt[column * tile::words + ((pair + 4) ^ flip)];
                for (int i = 0; i < 2; ++i) mma16816(acc[i][j], fa[i], b0, b1);
            }
        }
        if (hasNext) freight.unload(stages[(step + 1) & 1]);
        __syncthreads();
    }

    if constexpr (Splits > 1) {
        const int tileIndex = blockIdx.y * gridDim.x + blockIdx.x;
        float* sums = &acc[0][0][0];
        // Sums stay in the order of the registers: the threads of the last block have the same places.
        float* slots = partial + size_t(tileIndex) * Splits * (tile::rows * tile::cols) + threadIdx.x;
        float* mine = slots + size_t(blockIdx.z) * (tile::rows * tile::cols);
#pragma unroll
        for (int e = 0; e < 32; ++e) mine[e * tile::threads] = sums[e];
        __threadfence();
        __syncthreads();
        if (threadIdx.x == 0) isLast = atomicAdd(&tickets[tileIndex], 1) == Splits - 1;
        __syncthreads();
        if (!isLast) return;
        __threadfence();
#pragma unroll
        for (int e = 0; e < 32; ++e) {
            float total = 0.0f;      // always in the order of the splits, whichever block is the last
            for (int s = 0; s < Splits; ++s) total += __ldcg(&slots[s * (tile::rows * tile::cols) + e * tile::threads]);
            sums[e] = total;
        }
    }

    for (int i = 0; i < 2; ++i)
        for (int j = 0; j < 4; ++j)
            for (int h = 0; h < 2; ++h) {
                const int r = row0 + warpRow + i * 16 + h * 8 + group, c = col0 + warpCol + j * 8 + quad * 2;
                if (r < M && c < N) C[size_t(r) * N + c] = __float2half_rn(acc[i][j][2 * h]);
                if (r < M && c + 1 < N) C[size_t(r) * N + c + 1] = __float2half_rn(acc[i][j][2 * h + 1]);
            }
}
