/* evoengine
name: gathered_scores_producer_warp
precision: fp32
summary: one warp copies rows that indices name into a ring in shared memory, asynchronously; three warps multiply them with the query; named barriers
tunables:
  ROUNDS: [16, 8]
let:
  PER_BLOCK: 12 * ROUNDS
launches:
  - kernel: scores
    grid: ["ceil_div(T, PER_BLOCK)"]
    block: [128]
    args: [table, index, query, out, T]
*/
#include <cuda_pipeline.h>

constexpr int ROWS = 12, RING = 4;   // of 128 floats

// Barrier 1 + s: stage s is full; barrier 1 + RING + s: it is empty.
__device__ __forceinline__ void wait_at(int barrier) { asm volatile("bar.sync %0, 128;" ::"r"(barrier) : "memory"); }
__device__ __forceinline__ void arrive_at(int barrier) { asm volatile("bar.arrive %0, 128;" ::"r"(barrier) : "memory"); }

__global__ void __launch_bounds__(128)
scores(const float* __restrict__ table, const int* __restrict__ index, const float* __restrict__ query, float* __restrict__ out, int T) {
    __shared__ __align__(16) float ring[RING][ROWS][128];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int first = blockIdx.x * ROWS * ROUNDS;
    if (warp == 3) {
        for (int round = 0; round < ROUNDS + 1; ++round) {
            if (round < ROUNDS) {
                if (round >= RING) wait_at(1 + RING + round % RING);
                const int own = first + round * ROWS + lane;
                const int named = lane < ROWS && own < T ? index[own] : 0;
#pragma unroll
                for (int row = 0; row < ROWS; ++row) {
                    const int from = __shfl_sync(~0u, named, row);
                    __pipeline_memcpy_async(&ring[round % RING][row][lane * 4], table + size_t(from) * 128 + lane * 4, 16);
                }
            }
            __pipeline_commit();
            if (round > 0) {   // the stage before has come
                __pipeline_wait_prior(1);
                __threadfence_block();
                arrive_at(1 + (round - 1) % RING);
            }
        }
    } else {
        const float4 q = reinterpret_cast<const float4*>(query)[lane];
        for (int round = 0; round < ROUNDS; ++round) {
            wait_at(1 + round % RING);
#pragma unroll
            for (int i = 0; i < ROWS / 3; ++i) {
                const int row = warp * (ROWS / 3) + i, at = first + round * ROWS + row;
                const float4 v = reinterpret_cast<const float4*>(ring[round % RING][row])[lane];
                float sum = v.x * q.x + v.y * q.y + v.z * q.z + v.w * q.w;
#pragma unroll
                for (int step = 16; step; step /= 2) sum += __shfl_xor_sync(~0u, sum, step);
                if (lane == 0 && at < T) out[at] = sum;
            }
            if (round + RING < ROUNDS) arrive_at(1 + RING + round % RING);
        }
    }
}
