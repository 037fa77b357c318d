/* evoengine
name: int8_scaled_mma
precision: fp16
summary: tiles of 32 x 64 on integer mma.sync, slices of 64 of the depth in two buffers with the next one waiting in registers; scales and bias meet the whole sums at the end
launches:
  - kernel: product
    grid: ["ceil_div(N, 64)", "ceil_div(M, 32)"]
    block: [128]
    args: [a, b, row_scale, column_scale, bias, out, M, N, K]
*/
#include <cuda_fp16.h>

constexpr int THREADS = 128, BM = 32, BN = 64, BK = 64, PITCH = BK + 16;

// Sixteen codes of a row, zeros outside of the matrix.
__device__ __forceinline__ uint4 sixteen(const signed char* __restrict__ codes, int row, int rows, int k, int K) {
    if (row < rows && k < K) return *reinterpret_cast<const uint4*>(codes + size_t(row) * K + k);
    return make_uint4(0u, 0u, 0u, 0u);
}

__device__ __forceinline__ unsigned word(const signed char* four) {
    return *reinterpret_cast<const unsigned*>(four);
}

__global__ void __launch_bounds__(THREADS)
product(const signed char* __restrict__ a, const signed char* __restrict__ b, const float* __restrict__ row_scale,
        const float* __restrict__ column_scale, const __half* __restrict__ bias, __half* __restrict__ out, int M,
        int N, int K) {
    __shared__ __align__(16) signed char rows[2][BM][PITCH], columns[2][BN][PITCH];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, group = lane / 4, quad = lane % 4;
    const int warp_row = warp / 2 * 16, warp_column = warp % 2 * 32;
    const int block_row = blockIdx.y * BM, block_column = blockIdx.x * BN;
    const int r = threadIdx.x / 4, c = threadIdx.x % 4 * 16;   // what this thread copies

    int sums[4][4] = {};
    uint4 left = sixteen(a, block_row + r, M, c, K);
    uint4 right[2] = {sixteen(b, block_column + r, N, c, K), sixteen(b, block_column + 32 + r, N, c, K)};
    for (int k = 0, stage = 0; k < K; k += BK, stage ^= 1) {
        *reinterpret_cast<uint4*>(&rows[stage][r][c]) = left;
        *reinterpret_cast<uint4*>(&columns[stage][r][c]) = right[0];
        *reinterpret_cast<uint4*>(&columns[stage][32 + r][c]) = right[1];
        __syncthreads();   // one a slice: a warp that is ahead writes the other buffer
        left = sixteen(a, block_row + r, M, k + BK + c, K);
        right[0] = sixteen(b, block_column + r, N, k + BK + c, K);
        right[1] = sixteen(b, block_column + 32 + r, N, k + BK + c, K);
#pragma unroll
        for (int d = 0; d < BK; d += 32) {
            const signed char* from = &rows[stage][warp_row + group][d + quad * 4];
            const unsigned a0 = word(from), a1 = word(from + 8 * PITCH);
            const unsigned a2 = word(from + 16), a3 = word(from + 8 * PITCH + 16);
#pragma unroll
            for (int j = 0; j < 4; ++j) {
                const signed char* other = &columns[stage][warp_column + j * 8 + group][d + quad * 4];
                asm volatile(
                    "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
                    "{%0,%1,%2,%3};"
                    : "+r"(sums[j][0]), "+r"(sums[j][1]), "+r"(sums[j][2]), "+r"(sums[j][3])
                    : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(word(other)), "r"(word(other + 16)));
            }
        }
    }

    const int row = block_row + warp_row + group;
#pragma unroll
    for (int h = 0; h < 2; ++h) {
        const int m = row + h * 8;
        if (m >= M) continue;
        const float by_row = row_scale[m];
#pragma unroll
        for (int j = 0; j < 4; ++j) {
#pragma unroll
            for (int e = 0; e < 2; ++e) {
                const int n = block_column + warp_column + j * 8 + quad * 2 + e;
                if (n >= N) continue;
                const float sum = float(sums[j][h * 2 + e]);
                out[size_t(m) * N + n] = __float2half(sum * column_scale[n] * by_row + __half2float(bias[n]));
            }
        }
    }
}
