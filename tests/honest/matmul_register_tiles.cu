/* evoengine
name: matmul_register_tiles
precision: fp16
summary: fp32 units only - block tiles in shared memory, TM x TN outer products in registers, both operands as floats
tunables:
  BM: [128, 64]
  BN: [128, 64]
  BK: [16, 8, 32]
  TM: [8, 4]
  TN: [8, 4]
let:
  THREADS: BM // TM * (BN // TN)
require:
  - THREADS <= 1024 and THREADS >= 64
  - 4 * BK * (BM + BN + 8) <= 49152
launches:
  - kernel: matmul<THREADS>
    grid: ["ceil_div(N, BN)", "ceil_div(M, BM)"]
    block: [THREADS]
    args: [a, b, out, M, N, K]
*/
#include <cuda_fp16.h>

template <int THREADS>
__global__ void __launch_bounds__(THREADS)
matmul(const __half* __restrict__ a, const __half* __restrict__ b, __half* __restrict__ out, int M, int N, int K) {
    __shared__ float a_tile[BK][BM + 4];   // transposed, so that a thread's TM values lie side by side
    __shared__ float b_tile[BK][BN + 4];
    const int first_row = blockIdx.y * BM, first_column = blockIdx.x * BN;
    const int thread_row = threadIdx.x / (BN / TN) * TM, thread_column = threadIdx.x % (BN / TN) * TN;
    float sums[TM][TN] = {};
    float from_a[TM], from_b[TN];

    for (int step = 0; step < K; step += BK) {
        for (int i = threadIdx.x; i < BM * BK; i += THREADS) {
            const int r = i / BK, k = i % BK;
            a_tile[k][r] = first_row + r < M && step + k < K ? float(a[size_t(first_row + r) * K + step + k]) : 0.0f;
        }
        for (int i = threadIdx.x; i < BK * BN; i += THREADS) {
            const int k = i / BN, c = i % BN;
            b_tile[k][c] = step + k < K && first_column + c < N ? float(b[size_t(step + k) * N + first_column + c]) : 0.0f;
        }
        __syncthreads();
#pragma unroll
        for (int k = 0; k < BK; ++k) {
#pragma unroll
            for (int i = 0; i < TM; i += 4) *reinterpret_cast<float4*>(&from_a[i]) = *reinterpret_cast<const float4*>(&a_tile[k][thread_row + i]);
#pragma unroll
            for (int j = 0; j < TN; j += 4) *reinterpret_cast<float4*>(&from_b[j]) = *reinterpret_cast<const float4*>(&b_tile[k][thread_column + j]);
#pragma unroll
            for (int i = 0; i < TM; ++i)
#pragma unroll
                for (int j = 0; j < TN; ++j) sums[i][j] = fmaf(from_a[i], from_b[j], sums[i][j]);
        }
        __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < TM; ++i)
#pragma unroll
        for (int j = 0; j < TN; ++j) {
            const int row = first_row + thread_row + i, column = first_column + thread_column + j;
            if (row < M && column < N) out[size_t(row) * N + column] = __float2half(sums[i][j]);
        }
}
