/* evoengine
name: matmul_rows_of_eight
precision: fp16
summary: a thread computes eight neighbouring columns of several rows, 16-byte loads of b and no shared memory
tunables:
  ROWS: [4, 8, 2]
let:
  WHOLE: N % 8 == 0
launches:
  - kernel: matmul<WHOLE>
    grid: ["ceil_div(N, 256)", "ceil_div(M, 4 * ROWS)"]
    block: [32, 4]
    args: [a, b, out, M, N, K]
*/
#include <cuda_fp16.h>

union Eight {
    uint4 bits;
    __half2 pairs[4];
    __half values[8];
};

template <bool WHOLE>
__global__ void matmul(const __half* __restrict__ a, const __half* __restrict__ b, __half* __restrict__ out, int M, int N, int K) {
    const int column = (blockIdx.x * 32 + threadIdx.x) * 8, row0 = (blockIdx.y * 4 + threadIdx.y) * ROWS;
    if (column >= N || row0 >= M) return;
    float2 sums[ROWS][4] = {};
    Eight y;
    for (int k = 0; k < K; ++k) {
        const __half* line = b + size_t(k) * N + column;
        if (WHOLE) y.bits = __ldg(reinterpret_cast<const uint4*>(line));
        else
            for (int i = 0; i < 8; ++i) y.values[i] = column + i < N ? line[i] : __float2half(0.0f);
#pragma unroll
        for (int r = 0; r < ROWS; ++r) {
            const float x = __half2float(__ldg(a + size_t(min(row0 + r, M - 1)) * K + k));
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                const float2 v = __half22float2(y.pairs[i]);
                sums[r][i].x = fmaf(x, v.x, sums[r][i].x);
                sums[r][i].y = fmaf(x, v.y, sums[r][i].y);
            }
        }
    }
    for (int r = 0; r < ROWS && row0 + r < M; ++r) {
        for (int i = 0; i < 4; ++i) y.pairs[i] = __float22half2_rn(sums[r][i]);
        __half* line = out + size_t(row0 + r) * N + column;
        if (WHOLE) *reinterpret_cast<uint4*>(line) = y.bits;
        else
            for (int i = 0; i < 8 && column + i < N; ++i) line[i] = y.values[i];
    }
}
