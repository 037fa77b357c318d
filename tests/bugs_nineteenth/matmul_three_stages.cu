/* evoengine
name: matmul_three_stages
precision: fp16
summary: tiles of 64 by 64 on mma.sync, fed through three stages of shared memory by cp.async where rows are whole vectors, else by single elements
let:
  ALIGNED: 1 if K % 8 == 0 and N % 8 == 0 else 0
launches:
  - kernel: gemm<ALIGNED>
    grid: ["ceil_div(N, 64)", "ceil_div(M, 64)"]
    block: [128]
    args: [a, b, out, M, N, K]
*/
#include <cuda_fp16.h>

constexpr int THREADS = 128, BM = 64, BN = 64, BK = 32, STAGES = 3;
constexpr int LDA = BK + 8, LDB = BN + 8;

__device__ __forceinline__ unsigned shared_address(const void* p) { return static_cast<unsigned>(__cvta_generic_to_shared(p)); }

// 16 bytes, zeros where there is nothing to copy.
__device__ __forceinline__ void cp_async(__half* to, const __half* from, bool valid) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(to)), "l"(from), "r"(valid ? 16 : 0)
                 : "memory");
}

template <bool ALIGNED>
__global__ void __launch_bounds__(THREADS)
gemm(const __half* __restrict__ a, const __half* __restrict__ b, __half* __restrict__ out, int M, int N, int K) {
    __shared__ __align__(16) __half as[STAGES][BM * LDA], bs[STAGES][BK * LDB];
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int wm = warp / 2 * 32, wn = warp % 2 * 32;
    const int row0 = blockIdx.y * BM, col0 = blockIdx.x * BN;
    const __half zero = __float2half(0.0f);

    auto load_stage = [&](int stage, int k0) {
        if (ALIGNED) {
            for (int i = threadIdx.x; i < BM * BK / 8; i += THREADS) {
                const int r = i / (BK / 8), c = i % (BK / 8) * 8;
                const bool valid = row0 + r < M && k0 + c < K;
                cp_async(&as[stage][r * LDA + c], valid ? a + size_t(row0 + r) * K + k0 + c : a, valid);
            }
            for (int i = threadIdx.x; i < BK * BN / 8; i += THREADS) {
                const int r = i / (BN / 8), c = i % (BN / 8) * 8;
                const bool valid = k0 + r < K && col0 + c < N;
                cp_async(&bs[stage][r * LDB + c], valid ? b + size_t(k0 + r) * N + col0 + c : b, valid);
            }
        } else {
            for (int i = threadIdx.x; i < BM * BK; i += THREADS) {
                const int r = i / BK, c = i % BK;
                as[stage][r * LDA + c] = row0 + r < M && k0 + c < K ? a[size_t(row0 + r) * K + k0 + c] : zero;
            }
            for (int i = threadIdx.x; i < BK * BN; i += THREADS) {
                const int r = i / BN, c = i % BN;
                bs[stage][r * LDB + c] = k0 + r < K && col0 + c < N ? b[size_t(k0 + r) * N + col0 + c] : zero;
            }
        }
    };

    const int tiles = (K + BK - 1) / BK;
    for (int s = 0; s < STAGES - 1; ++s) {
        if (s < tiles) load_stage(s, s * BK);
        asm volatile("cp.async.commit_group;" ::: "memory");
    }

    float acc[2][4][4] = {};
    for (int t = 0; t < tiles; ++t) {
        asm volatile("cp.async.wait_group %0;" ::"n"(STAGES - 2) : "memory");
        __syncthreads();
        const int ahead = t + STAGES - 1;
        if (ahead < tiles) load_stage(ahead % STAGES, ahead * BK);
        asm volatile("cp.async.commit_group;" ::: "memory");

        const __half *sa = as[t % STAGES], *sb = bs[t % STAGES];
#pragma unroll
        for (int kk = 0; kk < BK; kk += 16) {
            unsigned af[2][4], bf[4][2];
#pragma unroll
            for (int i = 0; i < 2; ++i)
                asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                             : "=r"(af[i][0]), "=r"(af[i][1]), "=r"(af[i][2]), "=r"(af[i][3])
                             : "r"(shared_address(sa + (wm + i * 16 + lane % 16) * LDA + kk + lane / 16 * 8)));
#pragma unroll
            for (int j = 0; j < 4; ++j)
                asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];"
                             : "=r"(bf[j][0]), "=r"(bf[j][1])
                             : "r"(shared_address(sb + (kk + lane % 16) * LDB + wn + j * 8)));
#pragma unroll
            for (int i = 0; i < 2; ++i)
#pragma unroll
                for (int j = 0; j < 4; ++j)
                    asm volatile(
                        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                        : "+f"(acc[i][j][0]), "+f"(acc[i][j][1]), "+f"(acc[i][j][2]), "+f"(acc[i][j][3])
                        : "r"(af[i][0]), "r"(af[i][1]), "r"(af[i][2]), "r"(af[i][3]), "r"(bf[j][0]), "r"(bf[j][1]));
        }
    }

#pragma unroll
    for (int i = 0; i < 2; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j)
#pragma unroll
            for (int e = 0; e < 4; ++e) {
                const int row = row0 + wm + i * 16 + lane / 4 + e / 2 * 8;
                const int col = col0 + wn + j * 8 + lane % 4 * 2 + e % 2;
                if (row < M && col < N) out[size_t(row) * N + col] = __float2half(acc[i][j][e]);
            }
}
