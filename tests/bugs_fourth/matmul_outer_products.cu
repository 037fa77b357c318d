/* evoengine
name: matmul_outer_products
precision: fp16
summary: tiles of 64 x 64 without tensor cores, a thread has 4 x 4 sums 16 apart; the left tile is transposed and swizzled
launches:
  - kernel: matmul
    grid: ["ceil_div(M, 64)", "ceil_div(N, 64)"]
    block: [16, 16]
    args: [a, b, out, M, N, K]
*/
#include <cuda_fp16.h>

constexpr int TILE = 64, BK = 16, THREADS = 256;
using Sum = float;

// spreads the rows of a column of the left tile over the banks
__device__ int swizzled(int depth, int row) { return row ^ depth * 4; }

__global__ void matmul(const half* a, const half* b, half* out, int M, int N, int K) {
    __shared__ float left[BK][TILE];  // [depth][row]
    __shared__ float right[BK][TILE];
    const int tx = threadIdx.x, ty = threadIdx.y, thread = ty * 16 + tx;
    const int block_row = blockIdx.x * TILE, block_column = blockIdx.y * TILE;
    Sum sums[4][4] = {};
    for (int depth = 0; depth < K; depth += BK) {
        for (int i = thread; i < TILE * BK; i += THREADS) {
            const int r = i / BK, d = i % BK;
            const bool inside = block_row + r < M && depth + d < K;
            left[d][swizzled(d, r)] = inside ? __half2float(a[size_t(block_row + r) * K + depth + d]) : 0.0f;
        }
        for (int i = thread; i < BK * TILE; i += THREADS) {
            const int d = i / TILE, c = i % TILE;
            const bool inside = depth + d < K && block_column + c < N;
            right[d][c] = inside ? __half2float(b[size_t(depth + d) * N + block_column + c]) : 0.0f;
        }
        __syncthreads();
        for (int d = 0; d < BK; ++d) {
            float x[4], y[4];
            for (int i = 0; i < 4; ++i) x[i] = left[d][swizzled(d, ty + 16 * i)];
            for (int j = 0; j < 4; ++j) y[j] = right[d][tx + 16 * j];
            for (int i = 0; i < 4; ++i)
                for (int j = 0; j < 4; ++j) sums[i][j] = Sum(float(sums[i][j]) + x[i] * y[j]);
        }
        __syncthreads();
    }
    for (int i = 0; i < 4; ++i)
        for (int j = 0; j < 4; ++j) {
            const int row = block_row + ty + 16 * i, column = block_column + tx + 16 * j;
            if (row < M && column < N) out[size_t(row) * N + column] = __float2half(float(sums[i][j]));
        }
}
