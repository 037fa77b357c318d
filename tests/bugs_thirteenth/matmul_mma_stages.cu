/* evoengine
name: matmul_mma_stages
precision: fp16
summary: mma.sync m16n8k16 with fragments by ldmatrix; cp.async keeps STAGES tiles in flight where rows are aligned
tunables:
  STAGES: [3, 4, 2]
let:
  ALIGNED: 1 if N % 8 == 0 and K % 8 == 0 else 0
launches:
  - kernel: matmul<ALIGNED>
    grid: ["ceil_div(N, 64)", "ceil_div(M, 64)"]
    block: [128]
    args: [a, b, out, M, N, K]
*/
#include <cuda_fp16.h>

// A block of four warps computes 64 x 64 of the output, each warp 32 x 32 of it.
constexpr int BM = 64, BN = 64, BK = 32;
constexpr int LDA = BK + 8, LDB = BN + 8;

__device__ __forceinline__ unsigned shared_address(const void* p) {
    return static_cast<unsigned>(__cvta_generic_to_shared(p));
}

// Eight halves of a row-major matrix to shared memory; zeros where it ends.
template <bool ALIGNED>
__device__ __forceinline__ void copy8(__half* to, const __half* matrix, int rows, int columns,
                                      int r, int c) {
    if (ALIGNED) {
        const bool inside = r < rows && c < columns;
        const __half* from = inside ? matrix + static_cast<size_t>(r) * columns + c : matrix;
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                     :: "r"(shared_address(to)), "l"(from), "r"(inside ? 16 : 0) : "memory");
    } else {
#pragma unroll
        for (int i = 0; i < 8; ++i)
            to[i] = r < rows && c + i < columns ? matrix[static_cast<size_t>(r) * columns + c + i]
                                                : __float2half(0.0f);
    }
}

__device__ __forceinline__ void ldmatrix4(unsigned (&r)[4], const __half* p) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(shared_address(p)) : "memory");
}

__device__ __forceinline__ void ldmatrix4_transposed(unsigned (&r)[4], const __half* p) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(shared_address(p)) : "memory");
}

__device__ __forceinline__ void mma(float (&d)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

template <int ALIGNED>
__global__ void __launch_bounds__(128)
matmul(const __half* __restrict__ a, const __half* __restrict__ b, __half* __restrict__ out,
       int M, int N, int K) {
    __shared__ __align__(16) __half tiles_a[STAGES][BM * LDA];
    __shared__ __align__(16) __half tiles_b[STAGES][BK * LDB];

    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int warp_row = warp / 2 * 32, warp_col = warp % 2 * 32;
    const int block_row = blockIdx.y * BM, block_col = blockIdx.x * BN;
    const int steps = (K + BK - 1) / BK;

    auto fill = [&](int step) {
        if (step < steps) {
            const int stage = step % STAGES, k0 = step * BK;
            for (int i = threadIdx.x; i < BM * BK / 8; i += 128) {
                const int r = i / (BK / 8), c = i % (BK / 8) * 8;
                copy8<ALIGNED>(&tiles_a[stage][r * LDA + c], a, M, K, block_row + r, k0 + c);
            }
            for (int i = threadIdx.x; i < BK * BN / 8; i += 128) {
                const int r = i / (BN / 8), c = i % (BN / 8) * 8;
                copy8<ALIGNED>(&tiles_b[stage][r * LDB + c], b, K, N, k0 + r, block_col + c);
            }
        }
        asm volatile("cp.async.commit_group;" ::: "memory");   // empty ones count as well
    };

    float acc[2][4][4] = {};
    for (int s = 0; s < STAGES - 1; ++s) fill(s);

    for (int step = 0; step < steps; ++step) {
        asm volatile("cp.async.wait_group %0;" :: "n"(STAGES - 2) : "memory");
        __syncthreads();   // this step's tiles are there, and the last step's have been used
        fill(step + STAGES - 1);

        const __half* ta = tiles_a[step % STAGES];
        const __half* tb = tiles_b[step % STAGES];
#pragma unroll
        for (int k = 0; k < BK; k += 16) {
            unsigned fa[2][4], fb[2][4];
#pragma unroll
            for (int i = 0; i < 2; ++i)
                ldmatrix4(fa[i], ta + (warp_row + i * 16 + lane % 16) * LDA + k + lane / 16 * 8);
#pragma unroll
            for (int j = 0; j < 2; ++j)
                ldmatrix4_transposed(fb[j], tb + (k + lane % 16) * LDB + warp_col + j * 16 + lane / 16 * 8);
#pragma unroll
            for (int i = 0; i < 2; ++i)
#pragma unroll
                for (int j = 0; j < 4; ++j)
                    mma(acc[i][j], fa[i], fb[j / 2][j % 2 * 2], fb[j / 2][j % 2 * 2 + 1]);
        }
    }

#pragma unroll
    for (int i = 0; i < 2; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j)
#pragma unroll
            for (int e = 0; e < 4; ++e) {
                const int r = block_row + warp_row + i * 16 + lane / 4 + e / 2 * 8;
                const int c = block_col + warp_col + j * 8 + lane % 4 * 2 + e % 2;
                if (r < M && c < N) out[static_cast<size_t>(r) * N + c] = __float2half(acc[i][j][e]);
            }
}
