/* evoengine
name: matmul_async_swizzled
precision: fp16
summary: tiles of 64 x 64 x 32 in three stages of cp.async, swizzled, ldmatrix and mma.sync; tiles in groups of rows for the sake of L2
tunables:
  GROUP: [4, 2, 8]
let:
  V: 8 if K % 8 == 0 and N % 8 == 0 else 1
launches:
  - kernel: matmul<V>
    grid: ["ceil_div(M, 64) * ceil_div(N, 64)"]
    block: [128]
    args: [a, b, out, M, N, K]
*/
#include <cuda_fp16.h>

constexpr int BM = 64, BN = 64, BK = 32, STAGES = 3, THREADS = 128;

__device__ __forceinline__ void mma(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

__device__ __forceinline__ unsigned address_of(const half* from) {
    return static_cast<unsigned>(__cvta_generic_to_shared(from));
}

// V halves, or zeros outside of the matrix; only whole chunks of 16 bytes can be asynchronous
template <int V> __device__ __forceinline__ void copy(half* to, const half* from, bool inside) {
    if constexpr (V == 8)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(address_of(to)), "l"(from), "r"(inside ? 16 : 0));
    else
        *to = inside ? *from : __float2half(0.0f);
}

__device__ __forceinline__ int a_at(int row, int column) { return row * BK + ((column / 8) ^ (row / 2 % 4)) * 8 + column % 8; }
__device__ __forceinline__ int b_at(int row, int column) { return row * BN + ((column / 8) ^ (row % 8)) * 8 + column % 8; }

template <int V>
__global__ void __launch_bounds__(THREADS)
matmul(const half* __restrict__ a, const half* __restrict__ b, half* __restrict__ out, int M, int N, int K) {
    __shared__ __align__(16) half a_tiles[STAGES][BM * BK];
    __shared__ __align__(16) half b_tiles[STAGES][BK * BN];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int warp_row = warp / 2 * 32, warp_column = warp % 2 * 32;

    const int tiles_m = (M + BM - 1) / BM, tiles_n = (N + BN - 1) / BN;
    const int first_tile = blockIdx.x / (GROUP * tiles_n) * GROUP;
    const int height = min(GROUP, tiles_m - first_tile);
    const int inside_group = blockIdx.x % (GROUP * tiles_n);
    const int block_row = (first_tile + inside_group % height) * BM;
    const int block_column = inside_group / height * BN;

    auto fetch = [&](int stage, int depth) {
        for (int i = threadIdx.x * V; i < BM * BK; i += THREADS * V) {
            const int r = i / BK, c = i % BK;
            const bool inside = block_row + r < M && depth + c < K;
            copy<V>(a_tiles[stage] + a_at(r, c), inside ? a + size_t(block_row + r) * K + depth + c : a, inside);
        }
        for (int i = threadIdx.x * V; i < BK * BN; i += THREADS * V) {
            const int r = i / BN, c = i % BN;
            const bool inside = depth + r < K && block_column + c < N;
            copy<V>(b_tiles[stage] + b_at(r, c), inside ? b + size_t(depth + r) * N + block_column + c : b, inside);
        }
    };

    const int steps = (K + BK - 1) / BK;
    for (int s = 0; s < STAGES - 1; ++s) {
        if (s < steps) fetch(s, s * BK);
        asm volatile("cp.async.commit_group;");
    }
    float sums[2][4][4] = {};
    for (int step = 0; step < steps; ++step) {
        asm volatile("cp.async.wait_group %0;" ::"n"(STAGES - 2));
        __syncthreads();
        const int ahead = step + STAGES - 1;
        if (ahead < steps) fetch(ahead % STAGES, ahead * BK);
        // an empty group counts as well, so the number to wait for stays the same at the end
        asm volatile("cp.async.commit_group;");
        const half* a_tile = a_tiles[step % STAGES];
        const half* b_tile = b_tiles[step % STAGES];
        for (int d = 0; d < BK; d += 16) {
            unsigned x[2][4], y[2][4];
            for (int i = 0; i < 2; ++i)
                asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                             : "=r"(x[i][0]), "=r"(x[i][1]), "=r"(x[i][2]), "=r"(x[i][3])
                             : "r"(address_of(a_tile + a_at(warp_row + i * 16 + lane % 16, d + lane / 16 * 8))));
            for (int j = 0; j < 2; ++j)
                asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                             : "=r"(y[j][0]), "=r"(y[j][1]), "=r"(y[j][2]), "=r"(y[j][3])
                             : "r"(address_of(b_tile + b_at(d + lane % 16, warp_column + j * 16 + lane / 16 * 8))));
            for (int i = 0; i < 2; ++i)
                for (int j = 0; j < 4; ++j) mma(sums[i][j], x[i], y[j / 2][j % 2 * 2], y[j / 2][j % 2 * 2 + 1]);
        }
    }

    for (int i = 0; i < 2; ++i)
        for (int j = 0; j < 4; ++j)
            for (int h = 0; h < 2; ++h) {
                const int row = block_row + warp_row + i * 16 + h * 8 + lane / 4;
                const int column = block_column + warp_column + j * 8 + lane % 4 * 2;
                if (row >= M) continue;
                half* to = out + size_t(row) * N + column;
                if (V == 8 && column < N) {
                    *reinterpret_cast<half2*>(to) = __floats2half2_rn(sums[i][j][2 * h], sums[i][j][2 * h + 1]);
                } else {
                    if (column < N) to[0] = __float2half(sums[i][j][2 * h]);
                    if (column + 1 < N) to[1] = __float2half(sums[i][j][2 * h + 1]);
                }
            }
}
