/* evoengine
name: matmul_deep_pipeline
precision: fp16
summary: as many cp.async stages as the opt-in limit of shared memory holds; ldmatrix and mma.sync
tunables:
  BM: [128, 64]
  BN: [128, 64]
  BK: [64, 32]
  MOST_STAGES: [8, 4, 2]
let:
  STAGE: 2 * BM * (BK + 8) + 2 * BK * (BN + 8)
  STAGES: min(MOST_STAGES, MAX_SHARED_BYTES // STAGE)
  FAST: K % 8 == 0 and N % 8 == 0
require:
  - STAGES >= 2
launches:
  - kernel: matmul<STAGES, FAST>
    grid: ["ceil_div(N, BN)", "ceil_div(M, BM)"]
    block: [256]
    shared: STAGES * STAGE
    args: [a, b, out, M, N, K]
*/
#include <cuda_fp16.h>

typedef unsigned u32;
constexpr int PA = BK + 8, PB = BN + 8;            // pitches in halves: rows start in different banks
constexpr int WM = BM / 2, WN = BN / 4;            // the tile of one of 2 x 4 warps

__device__ __forceinline__ u32 shared_address(const void* p) { return static_cast<u32>(__cvta_generic_to_shared(p)); }
__device__ __forceinline__ void copy_async(void* to, const void* from, bool inside) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;\n" ::"r"(shared_address(to)), "l"(from), "r"(inside ? 16 : 0) : "memory");
}

// Rows [row, row + ROWS) and columns [column, column + COLUMNS) of a matrix; zeros outside.
template <int ROWS, int COLUMNS, int PITCH, bool FAST>
__device__ __forceinline__ void load(half* tile, const half* __restrict__ matrix, int row, int column, int rows, int columns) {
    for (int i = threadIdx.x; i < ROWS * COLUMNS / 8; i += 256) {
        const int r = i / (COLUMNS / 8), c = i % (COLUMNS / 8) * 8;
        half* to = tile + r * PITCH + c;
        if constexpr (FAST) {
            const bool inside = row + r < rows && column + c < columns;
            copy_async(to, inside ? matrix + size_t(row + r) * columns + column + c : matrix, inside);
        } else {
            for (int e = 0; e < 8; ++e)
                to[e] = row + r < rows && column + c + e < columns ? matrix[size_t(row + r) * columns + column + c + e] : half(0.0f);
        }
    }
}

template <int STAGES, bool FAST>
__global__ void __launch_bounds__(256, 1)
matmul(const half* __restrict__ a, const half* __restrict__ b, half* __restrict__ out, int M, int N, int K) {
    extern __shared__ __align__(16) half stages[];
    constexpr int STAGE = BM * PA + BK * PB;
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, wm = warp / 4 * WM, wn = warp % 4 * WN;
    const int row0 = blockIdx.y * BM, column0 = blockIdx.x * BN, steps = (K + BK - 1) / BK;
    float c[WM / 16][WN / 8][4] = {};

    auto fetch = [&](int step) {
        if (step < steps) {
            half* to = stages + step % STAGES * STAGE;
            load<BM, BK, PA, FAST>(to, a, row0, step * BK, M, K);
            load<BK, BN, PB, FAST>(to + BM * PA, b, step * BK, column0, K, N);
        }
        asm volatile("cp.async.commit_group;\n" ::: "memory");
    };
    for (int s = 0; s < STAGES - 1; ++s) fetch(s);
    for (int step = 0; step < steps; ++step) {
        asm volatile("cp.async.wait_group %0;\n" ::"n"(STAGES - 2) : "memory");
        __syncthreads();
        fetch(step + STAGES - 1);   // into the stage that all warps have left
        const half* ta = stages + step % STAGES * STAGE;
        const half* tb = ta + BM * PA;
#pragma unroll
        for (int k = 0; k < BK; k += 16) {
            u32 x[WM / 16][4], y[WN / 8][2];
#pragma unroll
            for (int i = 0; i < WM / 16; ++i)
                asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];\n"
                             : "=r"(x[i][0]), "=r"(x[i][1]), "=r"(x[i][2]), "=r"(x[i][3])
                             : "r"(shared_address(ta + (wm + i * 16 + lane % 16) * PA + k + lane / 16 * 8)) : "memory");
#pragma unroll
            for (int j = 0; j < WN / 8; ++j)
                asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0,%1}, [%2];\n"
                             : "=r"(y[j][0]), "=r"(y[j][1]) : "r"(shared_address(tb + (k + lane % 16) * PB + wn + j * 8)) : "memory");
#pragma unroll
            for (int i = 0; i < WM / 16; ++i)
#pragma unroll
                for (int j = 0; j < WN / 8; ++j)
                    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};\n"
                                 : "+f"(c[i][j][0]), "+f"(c[i][j][1]), "+f"(c[i][j][2]), "+f"(c[i][j][3])
                                 : "r"(x[i][0]), "r"(x[i][1]), "r"(x[i][2]), "r"(x[i][3]), "r"(y[j][0]), "r"(y[j][1]));
        }
    }
#pragma unroll
    for (int i = 0; i < WM / 16; ++i)
#pragma unroll
        for (int j = 0; j < WN / 8; ++j)
#pragma unroll
            for (int e = 0; e < 4; ++e) {
                const int r = row0 + wm + i * 16 + lane / 4 + e / 2 * 8, n = column0 + wn + j * 8 + lane % 4 * 2 + e % 2;
                if (r < M && n < N) out[size_t(r) * N + n] = __float2half_rn(c[i][j][e]);
            }
}
