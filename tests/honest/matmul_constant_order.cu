/* evoengine
name: matmul_constant_order
precision: fp16
summary: blocks visit 8 x 8 groups of tiles in the order of a table in constant memory; half2 loads, fp32 sums
tunables:
  THREADS_X: [16]
launches:
  - kernel: matmul
    grid: ["64 * ceil_div(N, 512) * ceil_div(M, 512)"]
    block: [THREADS_X, 16]
    args: [a, b, out, M, N, K]
*/
#include <cuda_fp16.h>

// Places in an 8 x 8 group along a Z-shaped curve: column in the low three bits, row in the high ones.
__constant__ unsigned char place[64] = {
    0,  1,  8,  9,  2,  3,  10, 11, 16, 17, 24, 25, 18, 19, 26, 27, 4,  5,  12, 13, 6,  7,  14, 15, 20, 21, 28, 29, 22, 23, 30, 31,
    32, 33, 40, 41, 34, 35, 42, 43, 48, 49, 56, 57, 50, 51, 58, 59, 36, 37, 44, 45, 38, 39, 46, 47, 52, 53, 60, 61, 54, 55, 62, 63};
__constant__ float one = 1.0f;

__global__ void __launch_bounds__(16 * THREADS_X)
matmul(const __half* __restrict__ a, const __half* __restrict__ b, __half* __restrict__ out, int M, int N, int K) {
    __shared__ float ta[64][17];
    __shared__ float2 tb[16][33];
    const int groups = (N + 511) / 512, group = blockIdx.x / 64, at = place[blockIdx.x % 64];
    const int row0 = group / groups * 512 + at / 8 * 64, column0 = group % groups * 512 + at % 8 * 64;
    if (row0 >= M || column0 >= N) return;
    const int tx = threadIdx.x, ty = threadIdx.y, thread = ty * 16 + tx;
    const bool pairs = N % 2 == 0;   // a row of b then begins at a multiple of four bytes
    float2 acc[4][2] = {};
    for (int k0 = 0; k0 < K; k0 += 16) {
        for (int i = thread; i < 64 * 16; i += 256) {
            const int r = row0 + i / 16, k = k0 + i % 16;
            ta[i / 16][i % 16] = r < M && k < K ? __half2float(a[(size_t)r * K + k]) * one : 0.0f;
        }
        for (int i = thread; i < 16 * 32; i += 256) {
            const int k = k0 + i / 32, n = column0 + i % 32 * 2;
            float2 v = make_float2(0.0f, 0.0f);
            if (k < K && n < N) {
                const __half* p = b + (size_t)k * N + n;
                if (pairs) v = __half22float2(*reinterpret_cast<const __half2*>(p));
                else v = make_float2(__half2float(p[0]), n + 1 < N ? __half2float(p[1]) : 0.0f);
            }
            tb[i / 32][i % 32] = v;
        }
        __syncthreads();
#pragma unroll 4
        for (int k = 0; k < 16; ++k)
#pragma unroll
            for (int i = 0; i < 4; ++i)
#pragma unroll
                for (int j = 0; j < 2; ++j) {
                    const float x = ta[ty * 4 + i][k];
                    const float2 y = tb[k][tx + j * 16];
                    acc[i][j].x += x * y.x;
                    acc[i][j].y += x * y.y;
                }
        __syncthreads();
    }
    for (int i = 0; i < 4; ++i)
        for (int j = 0; j < 2; ++j) {
            const int r = row0 + ty * 4 + i, n = column0 + (tx + j * 16) * 2;
            if (r >= M || n >= N) continue;
            __half* p = out + (size_t)r * N + n;
            if (pairs) *reinterpret_cast<__half2*>(p) = __float22half2_rn(acc[i][j]);
            else {
                p[0] = __float2half(acc[i][j].x);
                if (n + 1 < N) p[1] = __float2half(acc[i][j].y);
            }
        }
}
