/* evoengine
name: matmul_specialised_split
precision: fp16
summary: two warps load and four multiply, joined by named barriers; K is split, and the last block of a tile adds the parts
tunables:
  SPLITS: [2, 1, 4]
let:
  SPAN: round_up(ceil_div(K, SPLITS), 32)      # of K, for each split: whole steps
  TILES: ceil_div(M, 64) * ceil_div(N, 64)
scratch:
  parts: {dtype: float32, shape: [SPLITS, TILES, 4096]}
  tickets: {dtype: int32, shape: [TILES], init: 0}
launches:
  - kernel: splitMatmul
    grid: ["ceil_div(N, 64)", "ceil_div(M, 64)", SPLITS]
    block: [192]
    args: [a, b, out, parts, tickets, M, N, K, SPAN]
*/
#include <cuda_fp16.h>

constexpr int kTile = 64, kStep = 32, kSlots = 2;
constexpr int kConsumers = 128, kProducers = 64, kAll = kConsumers + kProducers;
// Words of two halves that follow each other along K. The pitches spread a fragment's reads over all banks.
constexpr int kPitchA = kStep / 2 + 4, kPitchB = kTile + 8;

struct Slot {
    unsigned a[kTile][kPitchA];          // [row][pair]
    unsigned b[kStep / 2][kPitchB];      // [pair][column]
};

// Barrier 0 is that of __syncthreads. A slot has one for "full" and one for "empty"; the last is the consumers' own.
enum : int { kFull = 1, kEmpty = kFull + kSlots, kConsumersOnly = kEmpty + kSlots };

__device__ __forceinline__ void waitAt(int barrier, int threads) { asm volatile("bar.sync %0, %1;" ::"r"(barrier), "r"(threads) : "memory"); }

__device__ __forceinline__ void arriveAt(int barrier, int threads) {
    __threadfence_block();
    asm volatile("bar.arrive %0, %1;" ::"r"(barrier), "r"(threads) : "memory");
}

__device__ __forceinline__ unsigned packed(__half low, __half high) {
    return __half_as_ushort(low) | static_cast<unsigned>(__half_as_ushort(high)) << 16;
}

// The element of a row-major matrix, zero outside of it.
__device__ __forceinline__ __half elementOf(const __half* __restrict__ matrix, int rows, int columns, int row, int column) {
    return row < rows && column < columns ? matrix[size_t(row) * columns + column] : __ushort_as_half(0);
}

__device__ __forceinline__ void produce(Slot& slot, const __half* __restrict__ a, const __half* __restrict__ b, int M, int N, int K,
                                        int rowBase, int columnBase, int k, int rank) {
#pragma unroll 4
    for (int i = rank; i < kTile * kStep / 2; i += kProducers) {
        const int row = i / (kStep / 2), pair = i % (kStep / 2), at = k + 2 * pair;
        slot.a[row][pair] = packed(elementOf(a, M, K, rowBase + row, at), elementOf(a, M, K, rowBase + row, at + 1));
    }
#pragma unroll 4
    for (int pair = 0; pair < kStep / 2; ++pair) {
        const int at = k + 2 * pair;     // a producer has one column: neighbours read neighbouring halves
        slot.b[pair][rank] = packed(elementOf(b, K, N, at, columnBase + rank), elementOf(b, K, N, at + 1, columnBase + rank));
    }
}

// Sixteen rows of the tile times all of its columns: eight mma tiles side by side.
__device__ __forceinline__ void consume(const Slot& slot, float (&acc)[32], int warpRow, int group, int member) {
#pragma unroll
    for (int p = 0; p < kStep / 2; p += 8) {
        const unsigned a0 = slot.a[warpRow + group][p + member], a1 = slot.a[warpRow + group + 8][p + member];
        const unsigned a2 = slot.a[warpRow + group][p + member + 4], a3 = slot.a[warpRow + group + 8][p + member + 4];
#pragma unroll
        for (int t = 0; t < kTile / 8; ++t) {
            const unsigned b0 = slot.b[p + member][t * 8 + group], b1 = slot.b[p + member + 4][t * 8 + group];
            asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                         : "+f"(acc[4 * t]), "+f"(acc[4 * t + 1]), "+f"(acc[4 * t + 2]), "+f"(acc[4 * t + 3])
                         : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
        }
    }
}

__global__ void __launch_bounds__(kAll)
splitMatmul(const __half* __restrict__ a, const __half* __restrict__ b, __half* __restrict__ out, float* __restrict__ parts,
            int* __restrict__ tickets, int M, int N, int K, int span) {
    __shared__ Slot slots[kSlots];
    __shared__ int arrivedBefore;
    const int rowBase = blockIdx.y * kTile, columnBase = blockIdx.x * kTile;
    const int begin = blockIdx.z * span, end = min(K, begin + span);
    const int steps = end > begin ? (end - begin + kStep - 1) / kStep : 0;     // late splits of a short K have nothing to do

    if (threadIdx.x >= kConsumers) {
        for (int step = 0; step < steps; ++step) {
            const int s = step % kSlots;
            if (step >= kSlots) waitAt(kEmpty + s, kAll);
            produce(slots[s], a, b, M, N, K, rowBase, columnBase, begin + step * kStep, threadIdx.x - kConsumers);
            arriveAt(kFull + s, kAll);
        }
        return;
    }

    const int lane = threadIdx.x % 32, group = lane / 4, member = lane % 4, warpRow = threadIdx.x / 32 * 16;
    float acc[32] = {};
    for (int step = 0; step < steps; ++step) {
        const int s = step % kSlots;
        waitAt(kFull + s, kAll);
        consume(slots[s], acc, warpRow, group, member);
        if (step + kSlots < steps) arriveAt(kEmpty + s, kAll);     // the last reads of a slot have nobody waiting for them
    }

    // Every split leaves its part in the order of the registers, and the block that finds all others done adds them up.
    const size_t tile = blockIdx.y * gridDim.x + blockIdx.x, tiles = size_t(gridDim.x) * gridDim.y;
    float* mine = parts + (blockIdx.z * tiles + tile) * (kTile * kTile);
#pragma unroll
    for (int i = 0; i < 32; ++i) mine[i * kConsumers + threadIdx.x] = acc[i];
    __threadfence();
    waitAt(kConsumersOnly, kConsumers);
    if (threadIdx.x == 0) arrivedBefore = atomicAdd(&tickets[tile], 1);
    waitAt(kConsumersOnly, kConsumers);
    if (arrivedBefore != SPLITS - 1) return;
    __threadfence();

    for (int split = 0; split < SPLITS; ++split) {
        if (split == blockIdx.z) continue;                         // still in registers
        const float* part = parts + (split * tiles + tile) * (kTile * kTile);
#pragma unroll
        for (int i = 0; i < 32; ++i) acc[i] += __ldcg(&part[i * kConsumers + threadIdx.x]);
    }
#pragma unroll
    for (int i = 0; i < 32; ++i) {
        const int row = rowBase + warpRow + group + i % 4 / 2 * 8;
        const int column = columnBase + i / 4 * 8 + member * 2 + i % 2;
        if (row < M && column < N) out[size_t(row) * N + column] = __float2half_rn(acc[i]);
    }
}
