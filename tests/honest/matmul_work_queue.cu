/* evoengine
name: matmul_work_queue
precision: fp16
summary: persistent blocks take 64 x 64 tiles from an atomic queue that the last block resets; WMMA
tunables:
  BLOCKS_PER_SM: [2, 1, 4]
  DEPTH: [64, 32]
let:
  TILES: ceil_div(M, 64) * ceil_div(N, 64)
launches:
  - kernel: matmul
    grid: ["min(TILES, SM_COUNT * BLOCKS_PER_SM)"]
    block: [128]
    args: [a, b, out, M, N, K, TILES]
*/
#include <cuda_fp16.h>
#include <mma.h>

struct Queue {
    unsigned next, left;   // the next tile; blocks that have no more work
};
static __device__ Queue queue;

namespace tile {
using namespace nvcuda::wmma;
constexpr int A_PITCH = DEPTH + 8, B_PITCH = 72, C_PITCH = 68;
union Shared {
    struct { __half a[64 * A_PITCH], b[DEPTH * B_PITCH]; } in;
    float out[64 * C_PITCH];
};

__device__ void compute(Shared& s, const __half* a, const __half* b, __half* out, int M, int N, int K, int row0, int column0) {
    const int warp_row = threadIdx.x / 64 * 32, warp_column = threadIdx.x / 32 % 2 * 32;
    fragment<accumulator, 16, 16, 16, float> acc[2][2];
#pragma unroll
    for (int i = 0; i < 4; ++i) fill_fragment(acc[i / 2][i % 2], 0.f);
    for (int k0 = 0; k0 < K; k0 += DEPTH) {
        for (int i = threadIdx.x; i < 64 * DEPTH; i += 128) {
            const int r = i / DEPTH, k = i % DEPTH;
            s.in.a[r * A_PITCH + k] = row0 + r < M && k0 + k < K ? a[(size_t)(row0 + r) * K + k0 + k] : __half(0.f);
        }
        for (int i = threadIdx.x; i < DEPTH * 64; i += 128) {
            const int k = i / 64, c = i % 64;
            s.in.b[k * B_PITCH + c] = k0 + k < K && column0 + c < N ? b[(size_t)(k0 + k) * N + column0 + c] : __half(0.f);
        }
        __syncthreads();
#pragma unroll
        for (int k = 0; k < DEPTH; k += 16) {
            fragment<matrix_a, 16, 16, 16, __half, row_major> fa[2];
            fragment<matrix_b, 16, 16, 16, __half, row_major> fb[2];
#pragma unroll
            for (int i = 0; i < 2; ++i) {
                load_matrix_sync(fa[i], s.in.a + (warp_row + 16 * i) * A_PITCH + k, A_PITCH);
                load_matrix_sync(fb[i], s.in.b + k * B_PITCH + warp_column + 16 * i, B_PITCH);
            }
#pragma unroll
            for (int i = 0; i < 4; ++i) mma_sync(acc[i / 2][i % 2], fa[i / 2], fb[i % 2], acc[i / 2][i % 2]);
        }
        __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < 4; ++i)
        store_matrix_sync(s.out + (warp_row + i / 2 * 16) * C_PITCH + warp_column + i % 2 * 16, acc[i / 2][i % 2], C_PITCH, mem_row_major);
    __syncthreads();
    for (int i = threadIdx.x; i < 4096; i += 128)
        if (row0 + i / 64 < M && column0 + i % 64 < N)
            out[(size_t)(row0 + i / 64) * N + column0 + i % 64] = __float2half(s.out[i / 64 * C_PITCH + i % 64]);
    __syncthreads();
}
}  // namespace tile

__global__ void __launch_bounds__(128)
matmul(const __half* a, const __half* b, __half* out, int M, int N, int K, int tiles) {
    __shared__ __align__(128) tile::Shared shared;
    __shared__ int current;
    const int across = (N + 63) / 64;
    for (;;) {
        if (threadIdx.x == 0) current = atomicAdd(&queue.next, 1u);
        __syncthreads();
        const int mine = current;
        if (mine >= tiles) break;
        tile::compute(shared, a, b, out, M, N, K, mine / across * 64, mine % across * 64);
    }
    if (threadIdx.x == 0) {
        // atomicInc wraps to zero at the last block: the counter needs no reset of its own
        if (atomicInc(&queue.left, gridDim.x - 1) == gridDim.x - 1) atomicExch(&queue.next, 0u);
    }
}
