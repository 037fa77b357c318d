/* evoengine
name: matmul_split_depth_specialised
precision: fp16
summary: two warps fetch and four multiply, slices of K are added by atomics, a second launch rounds
tunables:
  DEPTH: [32, 16, 64]           # of one step along K
  SPLITS: [2, 1, 4]             # slices of K, which different work items sum
  ITEMS_PER_BLOCK: [2, 4, 1]
let:
  SLICE: round_up(ceil_div(K, SPLITS), DEPTH)
  ITEMS: ceil_div(M, 64) * ceil_div(N, 64) * SPLITS
  BLOCKS: ceil_div(ITEMS, ITEMS_PER_BLOCK)
scratch:
  sums: {dtype: float32, shape: [M, N], init: 0}
launches:
  - kernel: multiply_slices
    grid: [BLOCKS]
    block: [192]
    args: [a, b, sums, M, N, K, SLICE, ITEMS]
  - kernel: round_sums
    grid: ["ceil_div(M*N, 1024)"]
    block: [256]
    args: [sums, out, M*N]
*/
#include <cuda_fp16.h>
#include <cstdint>

constexpr int TILE = 64;
constexpr int CONSUMER_THREADS = 128, PRODUCER_THREADS = 64, ALL_THREADS = CONSUMER_THREADS + PRODUCER_THREADS;
constexpr int RING = 2;
constexpr int PAIRS = DEPTH / 2;           // two halves that are neighbours along K share a word
constexpr int ROW_PITCH = PAIRS + 4;       // of the words of a
constexpr int PAIR_PITCH = TILE + 8;       // of the words of b
constexpr int FULL = 1, EMPTY = FULL + RING;    // the first barrier of each kind; barrier 0 is that of __syncthreads

struct Stage {
    uint32_t rows[TILE][ROW_PITCH];         // a: [row][pair of k]
    uint32_t columns[PAIRS][PAIR_PITCH];    // b: [pair of k][column]
};

struct WorkItem {
    int row, column, k_begin, k_end;
};

__device__ __forceinline__ WorkItem work_item(int item, int columns, int depth, int slice) {
    const int tiles_across = (columns + TILE - 1) / TILE;
    const int tile = item / SPLITS, part = item % SPLITS;
    const int k_begin = part * slice;
    return {tile / tiles_across * TILE, tile % tiles_across * TILE, k_begin, min(k_begin + slice, depth)};
}

__device__ __forceinline__ void barrier_wait(int barrier) { asm volatile("bar.sync %0, %1;" ::"r"(barrier), "n"(ALL_THREADS) : "memory"); }
__device__ __forceinline__ void barrier_arrive(int barrier) { asm volatile("bar.arrive %0, %1;" ::"r"(barrier), "n"(ALL_THREADS) : "memory"); }

// Two halves of a row in one word, zeros in place of what lies outside the matrix.
__device__ __forceinline__ uint32_t load_pair(const __half* __restrict__ matrix, int row, int column, int rows, int columns) {
    if (row >= rows || column >= columns) return 0;
    const __half* first = matrix + size_t(row) * columns + column;
    if (columns % 2 == 0) return *reinterpret_cast<const uint32_t*>(first);
    const uint32_t low = __half_as_ushort(first[0]);
    const uint32_t high = column + 1 < columns ? __half_as_ushort(first[1]) : 0;
    return low | high << 16;
}

__device__ void fill_stage(Stage& stage, const __half* __restrict__ a, const __half* __restrict__ b, int M, int N, int K, const WorkItem& work, int k, int thread) {
    for (int i = thread; i < TILE * PAIRS; i += PRODUCER_THREADS) {
        const int row = i / PAIRS, pair = i % PAIRS;
        stage.rows[row][pair] = load_pair(a, work.row + row, k + 2 * pair, M, K);
    }
    for (int cell = thread; cell < PAIRS * TILE / 2; cell += PRODUCER_THREADS) {
        const int pair = cell / (TILE / 2), column = cell % (TILE / 2) * 2;
        const uint32_t upper = load_pair(b, k + 2 * pair, work.column + column, K, N);
        const uint32_t lower = load_pair(b, k + 2 * pair + 1, work.column + column, K, N);
        // From two columns of a row to two rows of a column: the tensor cores want neighbours along K in a word.
        stage.columns[pair][column] = __byte_perm(upper, lower, 0x5410);
        stage.columns[pair][column + 1] = __byte_perm(upper, lower, 0x7632);
    }
}

__device__ __forceinline__ void multiply_stage(float (&sum)[2][4][4], const Stage& stage, int warp_row, int warp_column, int group, int member) {
#pragma unroll
    for (int pair = 0; pair < PAIRS; pair += 8)
#pragma unroll
        for (int m = 0; m < 2; ++m) {
            const int row = warp_row + m * 16 + group;
            const uint32_t a0 = stage.rows[row][pair + member], a1 = stage.rows[row + 8][pair + member];
            const uint32_t a2 = stage.rows[row][pair + member + 4], a3 = stage.rows[row + 8][pair + member + 4];
#pragma unroll
            for (int n = 0; n < 4; ++n) {
                const int column = warp_column + n * 8 + group;
                float(&d)[4] = sum[m][n];
                asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                             : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                             : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(stage.columns[pair + member][column]), "r"(stage.columns[pair + member + 4][column]));
            }
        }
}

__global__ void __launch_bounds__(ALL_THREADS)
multiply_slices(const __half* __restrict__ a, const __half* __restrict__ b, float* __restrict__ sums, int M, int N, int K, int slice, int items) {
    __shared__ Stage stages[RING];
    int step = 0;      // counts on over the items, so both sides agree on the stage of the ring
    if (threadIdx.x >= CONSUMER_THREADS) {
        for (int item = blockIdx.x; item < items; item += gridDim.x) {
            const WorkItem work = work_item(item, N, K, slice);
            for (int k = work.k_begin; k < work.k_end; k += DEPTH, ++step) {
                if (step >= RING) barrier_wait(EMPTY + step % RING);
                fill_stage(stages[step % RING], a, b, M, N, K, work, k, threadIdx.x - CONSUMER_THREADS);
                barrier_arrive(FULL + step % RING);
            }
        }
        // The last stages are released as well: no barrier is left half full.
        for (int last = max(step - RING, 0); last < step; ++last) barrier_wait(EMPTY + last % RING);
        return;
    }
    const int warp = threadIdx.x / 32, group = threadIdx.x % 32 / 4, member = threadIdx.x % 4;
    const int warp_row = warp / 2 * 32, warp_column = warp % 2 * 32;
    for (int item = blockIdx.x; item < items; item += gridDim.x) {
        float sum[2][4][4] = {};
        const WorkItem work = work_item(item, N, K, slice);
        for (int k = work.k_begin; k < work.k_end; k += DEPTH, ++step) {
            barrier_wait(FULL + step % RING);
            multiply_stage(sum, stages[step % RING], warp_row, warp_column, group, member);
            barrier_arrive(EMPTY + step % RING);
        }
#pragma unroll
        for (int m = 0; m < 2; ++m)
            for (int n = 0; n < 4; ++n)
                for (int e = 0; e < 4; ++e) {
                    const int row = work.row + warp_row + m * 16 + group + e / 2 * 8;
                    const int column = work.column + warp_column + n * 8 + member * 2 + e % 2;
                    if (row < M && column < N) atomicAdd(&sums[size_t(row) * N + column], sum[m][n][e]);
                }
    }
}

// Four sums a thread, with one load and one store where all four exist.
__global__ void round_sums(const float* __restrict__ sums, __half* __restrict__ out, int count) {
    const int first = (blockIdx.x * blockDim.x + threadIdx.x) * 4;
    if (first + 4 <= count) {
        const float4 four = *reinterpret_cast<const float4*>(sums + first);
        __half2* to = reinterpret_cast<__half2*>(out + first);
        to[0] = __floats2half2_rn(four.x, four.y);
        to[1] = __floats2half2_rn(four.z, four.w);
    } else {
        for (int i = first; i < count; ++i) out[i] = __float2half_rn(sums[i]);
    }
}
