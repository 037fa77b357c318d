/* evoengine
name: matmul_mma_persistent
precision: fp16
summary: six blocks walk over tiles of 32 x 64; lanes pick their fragments for mma.sync from shared memory, where the right operand lies transposed
launches:
  - kernel: matmul
    grid: [6]
    block: [128]
    args: [a, b, out, M, N, K]
*/
#include <cuda_fp16.h>

constexpr int BM = 32, BN = 64, BK = 32, PITCH = BK + 8, THREADS = 128;

__device__ __forceinline__ void mma(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

__device__ __forceinline__ unsigned pair_at(const half* from) { return *reinterpret_cast<const unsigned*>(from); }

__global__ void __launch_bounds__(THREADS)
matmul(const half* __restrict__ a, const half* __restrict__ b, half* __restrict__ out, int M, int N, int K) {
    __shared__ __align__(16) half a_tile[BM * PITCH];
    __shared__ __align__(16) half b_tile[BN * PITCH];   // [column][depth]
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int group = lane / 4, pair = lane % 4 * 2;
    const int warp_row = warp / 2 * 16, warp_column = warp % 2 * 32;
    const int tiles_m = (M + BM - 1) / BM, tiles_n = (N + BN - 1) / BN;

    for (int tile = blockIdx.x; tile < tiles_m * tiles_n; tile += gridDim.x) {
        float sum[4][4] = {};
        const int block_row = tile / tiles_n * BM, block_column = tile % tiles_n * BN;
        for (int depth = 0; depth < K; depth += BK) {
            __syncthreads();
            for (int i = threadIdx.x; i < BM * BK; i += THREADS) {
                const int row = block_row + i / BK, left = depth + i % BK;
                a_tile[i / BK * PITCH + i % BK] = row < M && left < K ? a[size_t(row) * K + left] : __float2half(0.0f);
            }
            for (int i = threadIdx.x; i < BK * BN; i += THREADS) {
                const int down = depth + i / BN, column = block_column + i % BN;
                b_tile[i % BN * PITCH + i / BN] = down < K && column < N ? b[size_t(down) * N + column] : __float2half(0.0f);
            }
            __syncthreads();
            for (int d = 0; d < BK; d += 16) {
                const half* x_from = a_tile + (warp_row + group) * PITCH + d + pair;
                const unsigned x[4] = {pair_at(x_from), pair_at(x_from + 8 * PITCH), pair_at(x_from + 8),
                                       pair_at(x_from + 8 * PITCH + 8)};
                for (int n = 0; n < 4; ++n) {
                    const half* y_from = b_tile + (warp_column + n * 8 + group) * PITCH + d + pair;
                    mma(sum[n], x, pair_at(y_from), pair_at(y_from + 8));
                }
            }
        }
        for (int n = 0; n < 4; ++n)
            for (int e = 0; e < 4; ++e) {
                const int row = block_row + warp_row + group + e / 2 * 8;
                const int column = block_column + warp_column + n * 8 + pair + e % 2;
                if (row < M && column < N) out[size_t(row) * N + column] = __float2half(sum[n][e]);
            }
    }
}
