/* evoengine
name: matmul_persistent_mma
precision: fp16
summary: a block an SM walks over tiles of 128 x 64 by mma.sync; rows of a by ldmatrix, of b transposed; three stages of asynchronous copies
tunables:
  BLOCK_K: [32]
launches:
  - kernel: matmul
    grid: ["min(SM_COUNT, ceil_div(M, 128) * ceil_div(N, 64))"]
    block: [256]
    args: [a, b, out, M, N, K]
*/
#include <cuda_fp16.h>

constexpr int BM = 128, BN = 64, STAGES = 3, PITCH_A = BLOCK_K + 8, PITCH_B = BN + 8;

__device__ __forceinline__ unsigned address_of(const void* p) { return static_cast<unsigned>(__cvta_generic_to_shared(p)); }

// Eight halves from global to shared memory, zeros where they are outside of the matrix.
__device__ __forceinline__ void copy(__half* to, const __half* matrix, int rows, int columns, int row, int column) {
    if (columns % 8 == 0) {
        const bool inside = row < rows && column < columns;
        const __half* from = inside ? matrix + size_t(row) * columns + column : matrix;
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(address_of(to)), "l"(from), "r"(inside ? 16 : 0) : "memory");
    } else {
        for (int i = 0; i < 8; ++i)
            to[i] = row < rows && column + i < columns ? matrix[size_t(row) * columns + column + i] : __float2half(0.0f);
    }
}

__global__ void __launch_bounds__(256)
matmul(const __half* __restrict__ a, const __half* __restrict__ b, __half* __restrict__ out, int M, int N, int K) {
    __shared__ __align__(16) __half left[STAGES][BM][PITCH_A], right[STAGES][BLOCK_K][PITCH_B];
    const int t = threadIdx.x, lane = t % 32, warp = t / 32, wm = warp / 2 * 32, wn = warp % 2 * 32;
    const int across = (N + BN - 1) / BN, tiles = across * ((M + BM - 1) / BM), steps = (K + BLOCK_K - 1) / BLOCK_K;
    for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        const int row0 = tile / across * BM, column0 = tile % across * BN;
        auto load = [&](int step) {
            if (step < steps) {
                const int k0 = step * BLOCK_K;
                for (int i = t; i < BM * BLOCK_K / 8; i += 256) {
                    const int r = i / (BLOCK_K / 8), k = i % (BLOCK_K / 8) * 8;
                    copy(&left[step % STAGES][r][k], a, M, K, row0 + r, k0 + k);
                }
                for (int i = t; i < BLOCK_K * BN / 8; i += 256) {
                    const int k = i / (BN / 8), c = i % (BN / 8) * 8;
                    copy(&right[step % STAGES][k][c], b, K, N, k0 + k, column0 + c);
                }
            }
            asm volatile("cp.async.commit_group;" ::: "memory");
        };
        float sum[2][4][4] = {};
        for (int step = 0; step < STAGES - 1; ++step) load(step);
        for (int step = 0; step < steps; ++step) {
            asm volatile("cp.async.wait_group %0;" ::"n"(STAGES - 2) : "memory");
            __syncthreads();
            load(step + STAGES - 1);
#pragma unroll
            for (int k = 0; k < BLOCK_K; k += 16) {
                unsigned of_a[2][4], of_b[2][4];
#pragma unroll
                for (int i = 0; i < 2; ++i)
                    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                                 : "=r"(of_a[i][0]), "=r"(of_a[i][1]), "=r"(of_a[i][2]), "=r"(of_a[i][3])
                                 : "r"(address_of(&left[step % STAGES][wm + i * 16 + lane % 16][k + lane / 16 * 8])));
#pragma unroll
                for (int j = 0; j < 2; ++j)
                    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                                 : "=r"(of_b[j][0]), "=r"(of_b[j][1]), "=r"(of_b[j][2]), "=r"(of_b[j][3])
                                 : "r"(address_of(&right[step % STAGES][k + lane % 16][wn + j * 16 + lane / 16 * 8])));
#pragma unroll
                for (int i = 0; i < 2; ++i)
#pragma unroll
                    for (int j = 0; j < 4; ++j)
                        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                                     : "+f"(sum[i][j][0]), "+f"(sum[i][j][1]), "+f"(sum[i][j][2]), "+f"(sum[i][j][3])
                                     : "r"(of_a[i][0]), "r"(of_a[i][1]), "r"(of_a[i][2]), "r"(of_a[i][3]), "r"(of_b[j / 2][j % 2 * 2]), "r"(of_b[j / 2][j % 2 * 2 + 1]));
            }
        }
        asm volatile("cp.async.wait_all;" ::: "memory");
        __syncthreads();   // all have read the last stages
#pragma unroll
        for (int i = 0; i < 2; ++i)
#pragma unroll
            for (int j = 0; j < 4; ++j)
#pragma unroll
                for (int half = 0; half < 2; ++half) {
                    const int row = row0 + wm + i * 16 + lane / 4 + half * 8, column = column0 + wn + j * 8 + lane % 4 * 2;
                    const float first = sum[i][j][half * 2], second = sum[i][j][half * 2 + 1];
                    if (row < M && column + 1 < N && N % 2 == 0)
                        *reinterpret_cast<__half2*>(out + size_t(row) * N + column) = __floats2half2_rn(first, second);
                    else if (row < M && column < N) {
                        out[size_t(row) * N + column] = __float2half(first);
                        if (column + 1 < N) out[size_t(row) * N + column + 1] = __float2half(second);
                    }
                }
    }
}
