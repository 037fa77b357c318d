/* evoengine
name: linear_gelu
precision: fp16
summary: 64 x 64 tiles on mma.sync, operands in shared memory; bias, GELU and residual on the sums in registers
launches:
  - kernel: linear_gelu
    grid: ["ceil_div(N, 64)", "ceil_div(M, 64)"]
    block: [128]
    args: [x, weight, bias, residual, out, M, N, K]
*/
#include <cuda_fp16.h>

// c[16x8] += a[16x16] * b[16x8]. Lane i holds of c: row i / 4, columns 2*(i % 4) and + 1, and the same of row i / 4 + 8.
__device__ __forceinline__ void mma(float (&c)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

__device__ __forceinline__ float gelu(float t) { return 0.5f * t * (1.0f + erff(t * 0.70710678f)); }

// Rows first .. first + 63 and columns k .. k + 31 of a row-major [rows, K] matrix; zeros outside of it.
__device__ __forceinline__ void load(__half (*tile)[40], const __half* __restrict__ matrix, int first, int k, int rows, int K) {
    for (int i = threadIdx.x; i < 64 * 32; i += 128) {
        const int r = first + i / 32, c = k + i % 32;
        tile[i / 32][i % 32] = r < rows && c < K ? matrix[size_t(r) * K + c] : __half(0.0f);
    }
}

__global__ void __launch_bounds__(128)
linear_gelu(const __half* __restrict__ x, const __half* __restrict__ weight, const __half* __restrict__ bias,
            const __half* __restrict__ residual, __half* __restrict__ out, int M, int N, int K) {
    __shared__ __half rows[64][40], columns[64][40];
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
    const int row0 = blockIdx.y * 64, column0 = blockIdx.x * 64;
    float c[8][4] = {};   // the warp's 16 rows, all 64 columns
    for (int k = 0; k < K; k += 32) {
        load(rows, x, row0, k, M, K);
        load(columns, weight, column0, k, N, K);
        __syncthreads();
#pragma unroll
        for (int d = 0; d < 32; d += 16) {
            unsigned a[4];
#pragma unroll
            for (int i = 0; i < 4; ++i) a[i] = *reinterpret_cast<const unsigned*>(&rows[warp * 16 + g + i % 2 * 8][d + t * 2 + i / 2 * 8]);
#pragma unroll
            for (int j = 0; j < 8; ++j) {
                unsigned b[2];
#pragma unroll
                for (int i = 0; i < 2; ++i) b[i] = *reinterpret_cast<const unsigned*>(&columns[j * 8 + g][d + t * 2 + i * 8]);
                mma(c[j], a, b);
            }
        }
        __syncthreads();
    }
#pragma unroll
    for (int j = 0; j < 8; ++j)
#pragma unroll
        for (int e = 0; e < 4; ++e) {
            const int r = row0 + warp * 16 + g + e / 2 * 8, n = column0 + j * 8 + t * 2 + e % 2;
            if (r >= M || n >= N) continue;
            const float sum = c[j][e] + __half2float(bias[n]);
            out[size_t(r) * N + n] = __float2half(gelu(sum) + __half2float(residual[size_t(r) * N + n]));
        }
}
