/* evoengine
name: matmul_transposed_first
precision: fp16
summary: a first launch transposes b into scratch, so that both operands are read along K in half2
tunables:
  ROWS: [4, 8, 2]
scratch:
  b_columns: {dtype: float16, shape: [N, KP]}
  unused: {dtype: float32, shape: [1024]}
let:
  KP: round_up(K, 8)
launches:
  - kernel: transpose
    grid: ["ceil_div(N, 32)", "ceil_div(KP, 32)"]
    block: [32, 8]
    args: [b, b_columns, N, K, KP]
  - kernel: dot_products
    grid: ["ceil_div(N, 32)", "ceil_div(M, 8 * ROWS)"]
    block: [32, 8]
    args: [a, b_columns, out, unused, M, N, K, KP]
*/
#include <cuda_fp16.h>

__global__ void transpose(const __half* __restrict__ b, __half* __restrict__ b_columns, int N, int K, int KP) {
    __shared__ __half tile[32][34];
    for (int i = threadIdx.y; i < 32; i += 8) {
        const int k = blockIdx.y * 32 + i, n = blockIdx.x * 32 + threadIdx.x;
        tile[i][threadIdx.x] = k < K && n < N ? b[size_t(k) * N + n] : __float2half(0.0f);
    }
    __syncthreads();
    for (int i = threadIdx.y; i < 32; i += 8) {
        const int n = blockIdx.x * 32 + i, k = blockIdx.y * 32 + threadIdx.x;
        if (n < N && k < KP) b_columns[size_t(n) * KP + k] = tile[threadIdx.x][i];   // zeros from K on
    }
}

// Each thread: ROWS rows of a times one column of b. `unused` is scratch that an earlier version needed.
__global__ void dot_products(const __half* __restrict__ a, const __half* __restrict__ b_columns, __half* __restrict__ out,
                             float* unused, int M, int N, int K, int KP) {
    __shared__ __half2 rows[8 * ROWS][33], columns[32][33];
    const int first_row = blockIdx.y * 8 * ROWS, first_column = blockIdx.x * 32;
    const int thread = threadIdx.y * 32 + threadIdx.x;
    float sums[ROWS] = {};
    for (int start = 0; start < KP; start += 64) {
        for (int i = thread; i < 8 * ROWS * 32; i += 256) {
            const int r = first_row + i / 32, k = start + i % 32 * 2;
            const __half low = r < M && k < K ? a[size_t(r) * K + k] : __half(0.0f);
            const __half high = r < M && k + 1 < K ? a[size_t(r) * K + k + 1] : __half(0.0f);
            rows[i / 32][i % 32] = __halves2half2(low, high);
        }
        for (int i = thread; i < 32 * 32; i += 256) {
            const int c = first_column + i / 32, k = start + i % 32 * 2;
            columns[i / 32][i % 32] = c < N && k < KP ? *reinterpret_cast<const __half2*>(&b_columns[size_t(c) * KP + k]) : __half2half2(__half(0.0f));
        }
        __syncthreads();
        for (int k = 0; k < 32; ++k) {
            const float2 y = __half22float2(columns[threadIdx.x][k]);
#pragma unroll
            for (int r = 0; r < ROWS; ++r) {
                const float2 x = __half22float2(rows[threadIdx.y * ROWS + r][k]);
                sums[r] += x.x * y.x + x.y * y.y;
            }
        }
        __syncthreads();
    }
    for (int r = 0; r < ROWS; ++r) {
        const int row = first_row + threadIdx.y * ROWS + r, column = first_column + threadIdx.x;
        if (row < M && column < N) out[size_t(row) * N + column] = __float2half(sums[r]);
    }
}
