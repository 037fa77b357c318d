/* evoengine
name: matmul_ring_stages
precision: fp16
summary: tiles of 64 x 64 by four warps of 32 x 32, slices of 32 deep in a ring of three stages, fragments loaded by ldmatrix
let:
  V: 8 if K % 8 == 0 and N % 8 == 0 else 1
launches:
  - kernel: gemm_kernel<V>
    grid: ["ceil_div(N, 64)", "ceil_div(M, 64)"]
    block: [128]
    args: [a, b, out, M, N, K]
*/
#include <cuda_fp16.h>

#define BM 64
#define BN 64
#define BK 32
#define STAGES 3
#define LDA (BK + 8)
#define LDB (BN + 8)

__device__ __forceinline__ unsigned smem_u32(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }

#define LDMATRIX_X4(r0, r1, r2, r3, p) \
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];" \
                 : "=r"(r0), "=r"(r1), "=r"(r2), "=r"(r3) : "r"(smem_u32(p)))
#define LDMATRIX_X4_T(r0, r1, r2, r3, p) \
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];" \
                 : "=r"(r0), "=r"(r1), "=r"(r2), "=r"(r3) : "r"(smem_u32(p)))
#define MMA_16816(d, a, b0, b1) \
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};" \
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1))

// Copies V halves, or V zeros if the source is outside of the matrix.
template <int V>
__device__ __forceinline__ void copy_in(half* dst, const half* src, bool valid) {
    if constexpr (V == 8) {
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(smem_u32(dst)), "l"(src), "r"(valid ? 16 : 0));
    } else {
        *dst = valid ? *src : __float2half(0.0f);
    }
}

template <int V>
__global__ void __launch_bounds__(128)
gemm_kernel(const half* __restrict__ A, const half* __restrict__ B, half* __restrict__ C, int M, int N, int K) {
    __shared__ __align__(16) half As[STAGES][BM * LDA];
    __shared__ __align__(16) half Bs[STAGES][BK * LDB];

    const int tid = threadIdx.x;
    const int lane_id = tid & 31;
    const int warp_id = tid >> 5;
    const int warp_m = (warp_id >> 1) * 32;
    const int warp_n = (warp_id & 1) * 32;
    const int block_m = blockIdx.y * BM;
    const int block_n = blockIdx.x * BN;
    const int num_k_tiles = (K + BK - 1) / BK;

    auto load_stage = [&](int stage, int k_tile) {
        const int k0 = k_tile * BK;
        for (int i = tid * V; i < BM * BK; i += 128 * V) {
            const int r = i / BK, c = i % BK;
            const bool valid = block_m + r < M && k0 + c < K;
            copy_in<V>(&As[stage][r * LDA + c], valid ? A + (size_t)(block_m + r) * K + k0 + c : A, valid);
        }
        for (int i = tid * V; i < BK * BN; i += 128 * V) {
            const int r = i / BN, c = i % BN;
            const bool valid = k0 + r < K && block_n + c < N;
            copy_in<V>(&Bs[stage][r * LDB + c], valid ? B + (size_t)(k0 + r) * N + block_n + c : B, valid);
        }
    };

    float acc[2][4][4] = {};

    // Prologue: fill all but one stage.
    for (int s = 0; s < STAGES - 1; ++s) {
        if (s < num_k_tiles) load_stage(s, s);
        asm volatile("cp.async.commit_group;");
    }

    for (int kt = 0; kt < num_k_tiles; ++kt) {
        asm volatile("cp.async.wait_group %0;" ::"n"(STAGES - 2));
        __syncthreads();

        const int next = kt + STAGES - 1;
        if (next < num_k_tiles) load_stage(next % STAGES, next);
        asm volatile("cp.async.commit_group;");

        const half* a_s = As[kt % STAGES];
        const half* b_s = Bs[kt % STAGES];
#pragma unroll
        for (int kk = 0; kk < BK; kk += 16) {
            unsigned a_frag[2][4], b_frag[4][2];
            for (int mi = 0; mi < 2; ++mi)
                LDMATRIX_X4(a_frag[mi][0], a_frag[mi][1], a_frag[mi][2], a_frag[mi][3],
                            a_s + (warp_m + mi * 16 + (lane_id & 15)) * LDA + kk + (lane_id >> 4) * 8);
            for (int ni = 0; ni < 4; ni += 2)
                LDMATRIX_X4_T(b_frag[ni][0], b_frag[ni][1], b_frag[ni + 1][0], b_frag[ni + 1][1],
                              b_s + (kk + (lane_id & 15)) * LDB + warp_n + ni * 8 + (lane_id >> 4) * 8);
            for (int mi = 0; mi < 2; ++mi)
                for (int ni = 0; ni < 4; ++ni) MMA_16816(acc[mi][ni], a_frag[mi], b_frag[ni][0], b_frag[ni][1]);
        }
    }

    // Epilogue: every thread stores pairs of columns of rows r and r + 8.
    for (int mi = 0; mi < 2; ++mi)
        for (int ni = 0; ni < 4; ++ni)
            for (int h = 0; h < 2; ++h) {
                const int row = block_m + warp_m + mi * 16 + (lane_id >> 2) + h * 8;
                const int col = block_n + warp_n + ni * 8 + (lane_id & 3) * 2;
                if (row >= M) continue;
                if (col < N) C[(size_t)row * N + col] = __float2half(acc[mi][ni][h * 2]);
                if (col + 1 < N) C[(size_t)row * N + col + 1] = __float2half(acc[mi][ni][h * 2 + 1]);
            }
}
