/* evoengine
name: matmul_depth_tickets
precision: fp16
summary: the depth is split among blocks, a thread has 4 x 4 sums; the block that takes the last ticket of a tile adds the parts up
tunables:
  SPLITS: [3, 2, 4]
scratch:
  parts: {shape: [SPLITS, M, N], dtype: float32}
launches:
  - kernel: matmul
    grid: ["ceil_div(N, 64)", "ceil_div(M, 64)", SPLITS]
    block: [256]
    args: [a, b, parts, out, M, N, K]
*/
#include <cuda_fp16.h>

constexpr int TILE = 64, BK = 16;

__device__ unsigned tickets[4096];  // one a tile; wraps to 0 with the last one

__global__ void matmul(const half* a, const half* b, float* parts, half* out, int M, int N, int K) {
    __shared__ float a_tile[BK][TILE + 1];
    __shared__ float b_tile[BK][TILE];
    __shared__ bool is_last;
    const int tx = threadIdx.x % 16, ty = threadIdx.x / 16;
    const int block_row = blockIdx.y * TILE, block_column = blockIdx.x * TILE;
    const int chunk = (K + SPLITS - 1) / SPLITS;
    const int begin = blockIdx.z * chunk, end = min(K, begin + chunk);
    float sums[4][4] = {};
    for (int depth = begin; depth < end; depth += BK) {
        for (int i = threadIdx.x; i < TILE * BK; i += 256) {
            const int r = i / BK, c = i % BK;
            const bool inside = block_row + r < M && depth + c < end;
            a_tile[c][r] = inside ? __half2float(a[size_t(block_row + r) * K + depth + c]) : 0.0f;
        }
        for (int i = threadIdx.x; i < TILE * BK; i += 256) {
            const int r = i / TILE, c = i % TILE;
            const bool inside = depth + r < end && block_column + c < N;
            b_tile[r][c] = inside ? __half2float(b[size_t(depth + r) * N + block_column + c]) : 0.0f;
        }
        __syncthreads();
        for (int d = 0; d < BK; ++d)
            for (int i = 0; i < 4; ++i)
                for (int j = 0; j < 4; ++j) sums[i][j] += a_tile[d][ty + 16 * i] * b_tile[d][tx + 16 * j];
        __syncthreads();
    }
    for (int i = 0; i < 4; ++i)
        for (int j = 0; j < 4; ++j) {
            const int row = block_row + ty + 16 * i, column = block_column + tx + 16 * j;
            if (row < M && column < N) parts[(size_t(blockIdx.z) * M + row) * N + column] = sums[i][j];
        }
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) {
        const unsigned ticket = atomicInc(&tickets[blockIdx.y * gridDim.x + blockIdx.x], SPLITS - 1);
        is_last = ticket == SPLITS - 1;
    }
    __syncthreads();
    if (!is_last) return;
    __threadfence();
    for (int i = threadIdx.x; i < TILE * TILE; i += 256) {
        const int row = block_row + i / TILE, column = block_column + i % TILE;
        if (row >= M || column >= N) continue;
        float sum = 0.0f;
        for (int s = 0; s < SPLITS; ++s) sum += parts[(size_t(s) * M + row) * N + column];
        out[size_t(row) * N + column] = __float2half(sum);
    }
}
