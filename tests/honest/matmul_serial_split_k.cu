/* evoengine
name: matmul_serial_split_k
precision: fp16
summary: the slices of a tile along K take tickets, wait for their turn at a semaphore and add to fp32 sums one after the other
tunables:
  MOST_SPLITS: [4, 2]
let:
  TILES: ceil_div(M, 64) * ceil_div(N, 64)
  SPLITS: max(1, min(MOST_SPLITS, ceil_div(8 * SM_COUNT, TILES), ceil_div(K, 64)))
  DEPTH: round_up(ceil_div(K, SPLITS), 16)
require:
  - TILES <= 4096
scratch:
  sums: {dtype: float32, shape: [TILES, 4096]}
launches:
  - kernel: matmul
    grid: ["TILES * SPLITS"]
    block: [256]
    args: [a, b, sums, out, M, N, K, SPLITS, DEPTH]
*/
#include <cuda_fp16.h>

// A block takes its tile and slice from a ticket and not from blockIdx: the holder of an earlier ticket has started, so
// that waiting for it ends.
__device__ unsigned tickets, finished;
__device__ int turn[4096];

__global__ void __launch_bounds__(256)
matmul(const __half* __restrict__ a, const __half* __restrict__ b, float* sums, __half* __restrict__ out, int M, int N, int K, int splits, int depth) {
    __shared__ float ta[16][65], tb[16][65];
    __shared__ unsigned ticket;
    if (threadIdx.x == 0) ticket = atomicAdd(&tickets, 1u);
    __syncthreads();
    const int tile = ticket / splits, slice = ticket % splits, across = (N + 63) / 64;
    const int row0 = tile / across * 64, column0 = tile % across * 64, tx = threadIdx.x % 16, ty = threadIdx.x / 16;
    const int begin = slice * depth, end = min(K, begin + depth);
    float acc[4][4] = {};
    for (int k0 = begin; k0 < end; k0 += 16) {
        for (int i = threadIdx.x; i < 1024; i += 256) {
            const int r = row0 + i / 16, k = k0 + i % 16;
            ta[i % 16][i / 16] = r < M && k < end ? __half2float(a[(size_t)r * K + k]) : 0.0f;
            const int kb = k0 + i / 64, n = column0 + i % 64;
            tb[i / 64][i % 64] = kb < end && n < N ? __half2float(b[(size_t)kb * N + n]) : 0.0f;
        }
        __syncthreads();
#pragma unroll
        for (int k = 0; k < 16; ++k)
#pragma unroll
            for (int i = 0; i < 4; ++i)
#pragma unroll
                for (int j = 0; j < 4; ++j) acc[i][j] += ta[k][ty + 16 * i] * tb[k][tx + 16 * j];
        __syncthreads();
    }

    if (threadIdx.x == 0) {
        while (atomicAdd(&turn[tile], 0) != slice) __nanosleep(64);
        __threadfence();
    }
    __syncthreads();
    float* mine = sums + (size_t)tile * 4096;
    const bool last = slice == splits - 1;
    for (int i = 0; i < 4; ++i)
        for (int j = 0; j < 4; ++j) {
            const int at = (ty + 16 * i) * 64 + tx + 16 * j, r = row0 + ty + 16 * i, n = column0 + tx + 16 * j;
            const float sum = slice == 0 ? acc[i][j] : __ldcg(mine + at) + acc[i][j];
            if (!last) __stcg(mine + at, sum);
            else if (r < M && n < N) out[(size_t)r * N + n] = __float2half(sum);
        }
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) {
        atomicExch(&turn[tile], last ? 0 : slice + 1);
        if (atomicAdd(&finished, 1u) == gridDim.x - 1) {   // everything is as it was before the launch
            finished = 0u;
            tickets = 0u;
        }
    }
}
