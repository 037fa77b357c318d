/* evoengine
name: matmul_split_k_specialised
precision: fp16
summary: K split among blocks with warps that load and warps that multiply; the last block of a tile adds up the partial sums
tunables:
  SPLITS: [2, 1, 4]
  DEPTH: [2, 3]                # tiles of the queue between the loading and the multiplying warps
let:
  CHUNK: 32 * ceil_div(K, 32 * SPLITS)      # of K, for one block
  TILES: ceil_div(M, 64) * ceil_div(N, 64)
scratch:
  partials: {dtype: float32, shape: [SPLITS, M, N]}
  arrivals: {dtype: int32, shape: [TILES], init: 0}
launches:
  - kernel: split_k_tile
    grid: ["ceil_div(N, 64)", "ceil_div(M, 64)", SPLITS]
    block: [192]
    args: [a, b, partials, arrivals, out, M, N, K, CHUNK]
*/
// Warps 0 to 3 multiply, warps 4 and 5 load. A slot of the queue holds 64 rows of `a` and 64 columns of `b`, both with
// K as the fast dimension, so that two neighbouring halves of a fragment are one 32-bit word of shared memory. Two
// named barriers for each slot hand it over: "full" from the loaders, "empty" from the others.
#include <cuda_fp16.h>

#define MATH_THREADS 128
#define LOAD_THREADS 64
#define ALL_THREADS (MATH_THREADS + LOAD_THREADS)
constexpr int BK = 32, PITCH = BK + 8;
enum BarrierId { FULL = 1, EMPTY = FULL + DEPTH };     // 0 is __syncthreads

struct Slot {
    __half rows[64][PITCH];       // of a
    __half columns[64][PITCH];    // of b, transposed
};

__device__ __forceinline__ void wait_at(int id) { asm volatile("bar.sync %0, %1;" ::"r"(id), "n"(ALL_THREADS) : "memory"); }
__device__ __forceinline__ void arrive_at(int id) { asm volatile("bar.arrive %0, %1;" ::"r"(id), "n"(ALL_THREADS) : "memory"); }
__device__ __forceinline__ unsigned word(const __half* p) { return *reinterpret_cast<const unsigned*>(p); }

__device__ void fill_slot(Slot& slot, const __half* __restrict__ a, const __half* __restrict__ b,
                          int M, int N, int K, int row0, int col0, int k0, int k_end, int loader) {
    for (int i = loader; i < 64 * BK; i += LOAD_THREADS) {
        const int r = i / BK, k = i % BK;      // neighbouring lanes take neighbours in memory
        slot.rows[r][k] = row0 + r < M && k0 + k < k_end ? a[size_t(row0 + r) * K + k0 + k] : __float2half(0.0f);
    }
    for (int i = loader; i < 64 * BK; i += LOAD_THREADS) {
        const int k = i / 64, c = i % 64;
        slot.columns[c][k] = col0 + c < N && k0 + k < k_end ? b[size_t(k0 + k) * N + col0 + c] : __float2half(0.0f);
    }
}

__global__ void __launch_bounds__(ALL_THREADS)
split_k_tile(const __half* __restrict__ a, const __half* __restrict__ b, float* partials, int* arrivals,
             __half* __restrict__ out, int M, int N, int K, int chunk) {
    __shared__ __align__(16) Slot queue[DEPTH];
    __shared__ bool is_last;
    const int row0 = blockIdx.y * 64, col0 = blockIdx.x * 64, split = blockIdx.z;
    const int k_begin = split * chunk, k_end = min(K, k_begin + chunk);
    const int steps = k_begin < k_end ? (k_end - k_begin + BK - 1) / BK : 0;
    const size_t plane = size_t(M) * N;      // elements of the output

    if (threadIdx.x >= MATH_THREADS) {
        for (int step = 0; step < steps; ++step) {
            const int s = step % DEPTH;
            if (step >= DEPTH) wait_at(EMPTY + s);
            fill_slot(queue[s], a, b, M, N, K, row0, col0, k_begin + step * BK, k_end, threadIdx.x - MATH_THREADS);
            arrive_at(FULL + s);
        }
    } else {
        const int lane = threadIdx.x % 32, quad = lane / 4, pair = lane % 4 * 2;
        const int warp_row = threadIdx.x / 64 * 32, warp_col = threadIdx.x / 32 % 2 * 32;
        float sum[2][4][4] = {};
        for (int step = 0; step < steps; ++step) {
            const int s = step % DEPTH;
            wait_at(FULL + s);
            const Slot& slot = queue[s];
#pragma unroll
            for (int k = 0; k < BK; k += 16) {
                unsigned left[2][4], right[4][2];
#pragma unroll
                for (int i = 0; i < 2; ++i) {
                    const int r = warp_row + i * 16 + quad;
                    left[i][0] = word(&slot.rows[r][k + pair]);
                    left[i][1] = word(&slot.rows[r + 8][k + pair]);
                    left[i][2] = word(&slot.rows[r][k + pair + 8]);
                    left[i][3] = word(&slot.rows[r + 8][k + pair + 8]);
                }
#pragma unroll
                for (int j = 0; j < 4; ++j) {
                    const __half* column = slot.columns[warp_col + j * 8 + quad];
                    right[j][0] = word(column + k + pair);
                    right[j][1] = word(column + k + pair + 8);
                }
#pragma unroll
                for (int i = 0; i < 2; ++i)
#pragma unroll
                    for (int j = 0; j < 4; ++j)
                        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                                     : "+f"(sum[i][j][0]), "+f"(sum[i][j][1]), "+f"(sum[i][j][2]), "+f"(sum[i][j][3])
                                     : "r"(left[i][0]), "r"(left[i][1]), "r"(left[i][2]), "r"(left[i][3]), "r"(right[j][0]), "r"(right[j][1]));
            }
            if (step + DEPTH < steps) arrive_at(EMPTY + s);     // only for a fill that is still to come
        }
        float* mine = partials + split * plane;
        for (int i = 0; i < 2; ++i)
            for (int j = 0; j < 4; ++j)
                for (int e = 0; e < 4; ++e) {
                    const int r = row0 + warp_row + i * 16 + quad + e / 2 * 8;
                    const int c = col0 + warp_col + j * 8 + pair + e % 2;
                    if (r < M && c < N) mine[size_t(r) * N + c] = sum[i][j][e];
                }
        __threadfence();      // the sums are in memory before the arrival is counted
    }

    __syncthreads();
    if (threadIdx.x == 0)
        is_last = atomicAdd(&arrivals[blockIdx.y * gridDim.x + blockIdx.x], 1) == SPLITS - 1;
    __syncthreads();
    if (!is_last) return;
    __threadfence();
    for (int i = threadIdx.x; i < 64 * 64; i += ALL_THREADS) {
        const int r = row0 + i / 64, c = col0 + i % 64;
        if (r >= M || c >= N) continue;
        const size_t at = size_t(r) * N + c;
        float total = 0.0f;
#pragma unroll
        for (int s = 0; s < SPLITS; ++s) total += __ldcg(partials + s * plane + at);
        out[at] = __float2half_rn(total);
    }
}
