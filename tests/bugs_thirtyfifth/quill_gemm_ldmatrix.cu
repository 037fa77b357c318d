/* evoengine
name: quill_gemm_ldmatrix
precision: fp16
summary: mma.sync m16n8k16 with ldmatrix, two stages of cp.async, blocks walk the output in bands of rows
tunables:
  BM: [64, 128]
  BN: [64, 128]
let:
  VA: 1 if K % 8 == 0 else 0     # rows of a are whole 16-byte pieces
  VB: 1 if N % 8 == 0 else 0
launches:
  - kernel: quill_gemm<VA, VB>
    grid: ["ceil_div(M, BM) * ceil_div(N, BN)"]
    block: [128]
    args: [a, b, out, M, N, K]
*/
#include <cuda_fp16.h>

constexpr int BK = 32;
constexpr int NTHREADS = 128;              // four warps, two by two over the tile
constexpr int WM = BM / 2, WN = BN / 2;    // the tile of a warp
constexpr int MI = WM / 16, NI = WN / 8;   // its mma tiles
constexpr int LDA = BK + 8, LDB = BN + 8;  // padded against bank conflicts
constexpr int BAND = 4;                    // rows of tiles that are walked together, for the L2 cache

using half = __half;

__device__ __forceinline__ unsigned smem_u32(const void* p) {
    return static_cast<unsigned>(__cvta_generic_to_shared(p));
}

// 16 bytes to shared memory, or 16 zero bytes where `valid` is false
__device__ __forceinline__ void copy16(half* dst, const half* src, bool valid) {
    const int bytes = valid ? 16 : 0;
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(smem_u32(dst)), "l"(src), "r"(bytes) : "memory");
}

__device__ __forceinline__ void commit_group() { asm volatile("cp.async.commit_group;" ::: "memory"); }

template <int PENDING>
__device__ __forceinline__ void wait_groups() {
    asm volatile("cp.async.wait_group %0;" ::"n"(PENDING) : "memory");
}

__device__ __forceinline__ void load_a_frag(unsigned (&r)[4], const half* p) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(smem_u32(p)) : "memory");
}

__device__ __forceinline__ void load_b_frag(unsigned (&r)[4], const half* p) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(smem_u32(p)) : "memory");
}

__device__ __forceinline__ void mma16816(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// Stages an R x C tile whose corner is (row0, col0) of a row-major rows x cols matrix.
template <int R, int C, int LD, int VECTOR>
__device__ __forceinline__ void stage_tile(half* tile, const half* __restrict__ src, int rows, int cols, int row0, int col0) {
    for (int piece = threadIdx.x; piece < R * C / 8; piece += NTHREADS) {
        const int r = piece / (C / 8), c = piece % (C / 8) * 8;
        const int row = row0 + r, column = col0 + c;
        half* dst = tile + r * LD + c;
        if (VECTOR) {
            const bool inside = row < rows && column < cols;
            copy16(dst, inside ? src + size_t(row) * cols + column : src, inside);
        } else {
            for (int e = 0; e < 8; ++e) {
                const bool inside = row < rows && column + e < cols;
                dst[e] = inside ? src[size_t(row) * cols + column + e] : __float2half(0.f);
            }
        }
    }
}

template <int VA, int VB>
__global__ void __launch_bounds__(NTHREADS)
quill_gemm(const half* __restrict__ a, const half* __restrict__ b, half* __restrict__ out, int M, int N, int K) {
    __shared__ __align__(16) half tile_a[2][BM * LDA];
    __shared__ __align__(16) half tile_b[2][BK * LDB];

    // which tile: bands of BAND rows of tiles, column by column within a band
    const int tiles_m = (M + BM - 1) / BM, tiles_n = (N + BN - 1) / BN;
    const int band = blockIdx.x / (BAND * tiles_n);
    const int first_m = band * BAND;
    const int height = min(BAND, tiles_m - first_m);
    const int within = blockIdx.x - band * BAND * tiles_n;
    const int row0 = (first_m + within % height) * BM;
    const int col0 = within / height * BN;

    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    const int warp_row = (warp >> 1) * WM, warp_col = (warp & 1) * WN;

    float acc[MI][NI][4];
#pragma unroll
    for (int i = 0; i < MI; ++i)
#pragma unroll
        for (int j = 0; j < NI; ++j)
#pragma unroll
            for (int e = 0; e < 4; ++e) acc[i][j][e] = 0.f;

    const int steps = (K + BK - 1) / BK;
    stage_tile<BM, BK, LDA, VA>(tile_a[0], a, M, K, row0, 0);
    stage_tile<BK, BN, LDB, VB>(tile_b[0], b, K, N, 0, col0);
    commit_group();

    for (int step = 0; step < steps; ++step) {
        if (step + 1 < steps) {
            const int next = (step + 1) & 1, depth = (step + 1) * BK;
            stage_tile<BM, BK, LDA, VA>(tile_a[next], a, M, K, row0, depth);
            stage_tile<BK, BN, LDB, VB>(tile_b[next], b, K, N, depth, col0);
        }
        commit_group();   // empty in the last step, so that the count stays the same
        wait_groups<1>();
        __syncthreads();

        const half* as = tile_a[step & 1];
        const half* bs = tile_b[step & 1];
#pragma unroll
        for (int kk = 0; kk < BK; kk += 16) {
            unsigned fa[MI][4];
#pragma unroll
            for (int i = 0; i < MI; ++i)
                load_a_frag(fa[i], as + (warp_row + i * 16 + lane % 16) * LDA + kk + lane / 16 * 8);
#pragma unroll
            for (int j = 0; j < NI; j += 2) {
                unsigned fb[4];
                load_b_frag(fb, bs + (kk + lane % 16) * LDB + warp_col + j * 8 + lane / 16 * 8);
#pragma unroll
                for (int i = 0; i < MI; ++i) {
                    mma16816(acc[i][j], fa[i], fb[0], fb[1]);
                    mma16816(acc[i][j + 1], fa[i], fb[2], fb[3]);
                }
            }
        }
        __syncthreads();   // this stage may be overwritten now
    }

#pragma unroll
    for (int i = 0; i < MI; ++i)
#pragma unroll
        for (int j = 0; j < NI; ++j)
#pragma unroll
            for (int h = 0; h < 2; ++h) {
                const int r = row0 + warp_row + i * 16 + lane / 4 + h * 8;
                const int c = col0 + warp_col + j * 8 + lane % 4 * 2;
                if (r >= M || c >= N) continue;
                half* dst = out + size_t(r) * N + c;
                if (VB) {
                    *reinterpret_cast<__half2*>(dst) = __floats2half2_rn(acc[i][j][2 * h], acc[i][j][2 * h + 1]);
                } else {
                    dst[0] = __float2half_rn(acc[i][j][2 * h]);
                    if (c + 1 < N) dst[1] = __float2half_rn(acc[i][j][2 * h + 1]);
                }
            }
}
