/* evoengine
name: matmul_shuffled_rows
precision: fp16
summary: a warp eight rows and 32 columns; a lane loads one k of each row, shuffles hand it to the others
tunables:
  WARPS: [8, 4]
launches:
  - kernel: multiply
    grid: ["ceil_div(N, 32)", "ceil_div(M, 8 * WARPS)"]
    block: [32, WARPS]
    args: [a, b, out, M, N, K]
*/
#include <cuda_fp16.h>

__global__ void __launch_bounds__(32 * WARPS)
multiply(const half* __restrict__ a, const half* __restrict__ b, half* __restrict__ out, int M, int N, int K) {
    const int lane = threadIdx.x, column = blockIdx.x * 32 + lane, row = (blockIdx.y * WARPS + threadIdx.y) * 8;
    float sum[8] = {};
    for (int from = 0; from < K; from += 32) {
        float mine[8];
#pragma unroll
        for (int r = 0; r < 8; ++r)
            mine[r] = row + r < M && from + lane < K ? __half2float(a[(long long)(row + r) * K + from + lane]) : 0.0f;
#pragma unroll
        for (int k = 0; k < 32; ++k) {
            const float other = column < N && from + k < K ? __half2float(b[(long long)(from + k) * N + column]) : 0.0f;
#pragma unroll
            for (int r = 0; r < 8; ++r) sum[r] += __shfl_sync(0xffffffffu, mine[r], k) * other;
        }
    }
#pragma unroll
    for (int r = 0; r < 8; ++r)
        if (row + r < M && column < N) out[(long long)(row + r) * N + column] = __float2half_rn(sum[r]);
}
