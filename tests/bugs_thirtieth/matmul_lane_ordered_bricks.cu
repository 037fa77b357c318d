/* evoengine
name: matmul_lane_ordered_bricks
precision: fp16
summary: both matrices are first laid out as 16x16 bricks in the order of the lanes of mma; the product then needs no shared memory
tunables:
  WARPS: [4, 2, 1]       # of a block, one below the other
  TALL: [2, 1, 4]        # bricks of the output that a warp has, downwards
  WIDE: [2, 1, 4]        # and across
let:
  KB: ceil_div(K, 16)                                   # bricks along the depth
  MB: TALL * WARPS * ceil_div(M, 16 * TALL * WARPS)     # along the rows: whole blocks
  NB: WIDE * ceil_div(N, 16 * WIDE)                     # along the columns
require:
  - TALL * WIDE <= 8                                    # eight sums a brick and thread
scratch:
  left: {dtype: float16, shape: [MB, KB, 32, 8]}
  right: {dtype: float16, shape: [NB, KB, 32, 8]}
launches:
  - kernel: lay_bricks<false>
    grid: ["ceil_div(MB * KB, 4)"]
    block: [32, 4]
    args: [a, left, M, K, KB, MB * KB]
  - kernel: lay_bricks<true>
    grid: ["ceil_div(NB * KB, 4)"]
    block: [32, 4]
    args: [b, right, K, N, KB, NB * KB]
  - kernel: multiply
    grid: [NB // WIDE, MB // (TALL * WARPS)]
    block: [32, WARPS]
    args: [left, right, out, M, N, KB]
*/
#include <cuda_fp16.h>
#include <cstdint>

// What one lane holds of a 16x16 brick: the four registers of an m16n8k16 operand A, or those of
// two operands B side by side. `reg[q]` is a pair of halves that follow each other in the depth.
struct alignas(16) Brick {
    uint32_t reg[4];
};

__device__ __forceinline__ uint32_t pair_of(__half first, __half second) {
    return uint32_t(__half_as_ushort(second)) << 16 | __half_as_ushort(first);
}

// A warp lays one brick. Outside the matrix there are zeros, so the product asks for no limits.
template <bool RIGHT>
__global__ void __launch_bounds__(128)
lay_bricks(const __half* __restrict__ source, __half* __restrict__ wall, int rows, int columns, int KB, int total) {
    const int number = blockIdx.x * 4 + threadIdx.y;
    if (number >= total) return;
    const int lane = threadIdx.x;
    const int group = lane / 4, rest = lane % 4;
    const int across = number / KB * 16;      // first row of a, or first column of b
    const int depth = number % KB * 16;

    auto at = [&](int r, int c) {
        return r < rows && c < columns ? source[size_t(r) * columns + c] : __half(0.0f);
    };

    Brick brick;
#pragma unroll
    for (int q = 0; q < 4; ++q) {
        if (RIGHT) {
            // b: registers 0, 1 are the depths 0-7, 8-15 of the first eight columns; 2, 3 those of the others
            const int k = depth + q % 2 * 8 + rest * 2;
            const int n = across + q / 2 * 8 + group;
            brick.reg[q] = pair_of(at(k, n), at(k + 1, n));
        } else {
            // a: registers 0, 1 are the upper and the lower eight rows of the depths 0-7; 2, 3 those of 8-15
            const int m = across + q % 2 * 8 + group;
            const int k = depth + q / 2 * 8 + rest * 2;
            brick.reg[q] = pair_of(at(m, k), at(m, k + 1));
        }
    }
    reinterpret_cast<Brick*>(wall)[size_t(number) * 32 + lane] = brick;
}

__device__ __forceinline__ void mma(float (&sum)[4], const Brick& a, uint32_t b0, uint32_t b1) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
        : "r"(a.reg[0]), "r"(a.reg[1]), "r"(a.reg[2]), "r"(a.reg[3]), "r"(b0), "r"(b1));
}

// The bricks that a warp multiplies in one step of the depth.
struct Course {
    Brick a[TALL], b[WIDE];

    __device__ __forceinline__ void fetch(const Brick* left, const Brick* right, int KB, int step) {
#pragma unroll
        for (int i = 0; i < TALL; ++i) a[i] = left[(size_t(i) * KB + step) * 32];
#pragma unroll
        for (int j = 0; j < WIDE; ++j) b[j] = right[(size_t(j) * KB + step) * 32];
    }
};

// Two neighbours of a row of the output.
__device__ __forceinline__ void put(__half* __restrict__ out, int M, int N, int row, int column, float first, float second) {
    if (row >= M) return;
    __half* target = out + size_t(row) * N + column;
    if (N % 2 == 0) {                // then pairs are aligned in every row, and none is cut
        if (column < N) *reinterpret_cast<__half2*>(target) = __floats2half2_rn(first, second);
    } else {
        if (column < N) target[0] = __float2half_rn(first);
        if (column + 1 < N) target[1] = __float2half_rn(second);
    }
}

__global__ void __launch_bounds__(32 * WARPS)
multiply(const __half* __restrict__ left, const __half* __restrict__ right, __half* __restrict__ out, int M, int N, int KB) {
    const int lane = threadIdx.x;
    const int top = (blockIdx.y * WARPS + threadIdx.y) * TALL;      // the warp's first brick, downwards
    const int side = blockIdx.x * WIDE;                             // and across
    const Brick* a = reinterpret_cast<const Brick*>(left) + size_t(top) * KB * 32 + lane;
    const Brick* b = reinterpret_cast<const Brick*>(right) + size_t(side) * KB * 32 + lane;

    float sum[TALL][WIDE][2][4] = {};
    Course now, ahead;
    now.fetch(a, b, KB, 0);
    for (int step = 0; step < KB; ++step) {
        if (step + 1 < KB) ahead.fetch(a, b, KB, step + 1);         // in flight during the products
#pragma unroll
        for (int i = 0; i < TALL; ++i)
#pragma unroll
            for (int j = 0; j < WIDE; ++j) {
                mma(sum[i][j][0], now.a[i], now.b[j].reg[0], now.b[j].reg[1]);
                mma(sum[i][j][1], now.a[i], now.b[j].reg[2], now.b[j].reg[3]);
            }
        now = ahead;
    }

    // sum[..][0, 1] are in the row lane / 4 of a brick, sum[..][2, 3] eight rows below
#pragma unroll
    for (int i = 0; i < TALL; ++i)
#pragma unroll
        for (int j = 0; j < WIDE; ++j)
#pragma unroll
            for (int h = 0; h < 2; ++h) {
                const int row = (top + i) * 16 + lane / 4;
                const int column = (side + j) * 16 + h * 8 + lane % 4 * 2;
                put(out, M, N, row, column, sum[i][j][h][0], sum[i][j][h][1]);
                put(out, M, N, row + 8, column, sum[i][j][h][2], sum[i][j][h][3]);
            }
}
