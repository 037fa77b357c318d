/* evoengine
name: matmul_swizzled_ring
precision: fp16
summary: ldmatrix and mma.sync on swizzled tiles that cp.async brings in a ring of stages; tiles walked in groups of rows
tunables:
  TILE_M: [64, 128]
  TILE_N: [64, 128]
  STAGES: [3, 2, 4]
  GROUP: [4, 8, 1]             # rows of tiles that are walked together, so that the L2 cache keeps their columns
let:
  TILES_M: ceil_div(M, TILE_M)
  TILES_N: ceil_div(N, TILE_N)
  RING: 64 * STAGES * (TILE_M + TILE_N)     # bytes
require:
  - RING <= MAX_SHARED_BYTES
launches:
  - kernel: hgemm_ring
    grid: ["TILES_M * TILES_N"]
    block: [128]
    shared: RING
    args: [a, b, out, M, N, K, TILES_M, TILES_N]
*/
// Four warps, two by two, share a TILE_M x TILE_N tile of the output. A stage of the ring holds 32 values of K: rows of
// `a` as four chunks of eight halves, rows of `b` as TILE_N / 8 of them. Chunks are permuted within their row, so that
// the eight rows that ldmatrix reads at once lie in different banks.
#include <cuda_fp16.h>

constexpr int DEPTH = 32;                              // of a stage
constexpr int HALF_M = TILE_M / 2, HALF_N = TILE_N / 2;     // the part of a warp
constexpr int MI = HALF_M / 16, NI = HALF_N / 16;

__device__ __forceinline__ unsigned smem_addr(const void* p) { return static_cast<unsigned>(__cvta_generic_to_shared(p)); }
// Where a chunk lies, in halves. Two rows of `a` fill all banks, one row of `b` does.
__device__ __forceinline__ int place_a(int row, int chunk) { return row * DEPTH + ((chunk ^ (row >> 1 & 3)) << 3); }
__device__ __forceinline__ int place_b(int row, int chunk) { return row * TILE_N + ((chunk ^ (row & 7)) << 3); }

// Copies eight halves of a row-major matrix, with zeros for those outside.
__device__ __forceinline__ void copy_chunk(__half* dst, const __half* __restrict__ src, int rows, int cols, int r, int c) {
    if (cols % 8 == 0) {
        const bool inside = r < rows && c < cols;
        const __half* from = inside ? src + size_t(r) * cols + c : src;
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                     ::"r"(smem_addr(dst)), "l"(from), "r"(inside ? 16 : 0) : "memory");
        return;
    }
#pragma unroll
    for (int e = 0; e < 8; ++e)
        dst[e] = r < rows && c + e < cols ? src[size_t(r) * cols + c + e] : __half(0.0f);
}

__device__ __forceinline__ void load_stage(__half* sa, __half* sb, const __half* a, const __half* b,
                                           int M, int N, int K, int m0, int n0, int k0) {
    for (int i = threadIdx.x; i < TILE_M * (DEPTH / 8); i += 128) {
        const int r = i >> 2, ch = i & 3;
        copy_chunk(sa + place_a(r, ch), a, M, K, m0 + r, k0 + ch * 8);
    }
    for (int i = threadIdx.x; i < DEPTH * (TILE_N / 8); i += 128) {
        const int r = i / (TILE_N / 8), ch = i % (TILE_N / 8);
        copy_chunk(sb + place_b(r, ch), b, K, N, k0 + r, n0 + ch * 8);
    }
}

__global__ void __launch_bounds__(128)
hgemm_ring(const __half* __restrict__ a, const __half* __restrict__ b, __half* __restrict__ out,
           int M, int N, int K, int tilesM, int tilesN) {
    extern __shared__ __align__(128) __half ring[];
    __half* ringA = ring;                                  // [STAGES][TILE_M][DEPTH]
    __half* ringB = ring + STAGES * TILE_M * DEPTH;        // [STAGES][DEPTH][TILE_N]

    // A group of GROUP rows of tiles is walked column by column; the last group may have fewer rows.
    const int group = blockIdx.x / (GROUP * tilesN), within = blockIdx.x % (GROUP * tilesN);
    const int groupRows = min(GROUP, tilesM - group * GROUP);
    const int m0 = (group * GROUP + within % groupRows) * TILE_M;
    const int n0 = within / groupRows * TILE_N;

    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    const int wm = (warp >> 1) * HALF_M, wn = (warp & 1) * HALF_N;
    float acc[MI][2 * NI][4] = {};

    const int steps = (K + DEPTH - 1) / DEPTH;
#pragma unroll
    for (int s = 0; s < STAGES - 1; ++s) {
        if (s < steps) load_stage(ringA + s * TILE_M * DEPTH, ringB + s * DEPTH * TILE_N, a, b, M, N, K, m0, n0, s * DEPTH);
        asm volatile("cp.async.commit_group;" ::: "memory");
    }
    for (int step = 0; step < steps; ++step) {
        asm volatile("cp.async.wait_group %0;" ::"n"(STAGES - 2) : "memory");
        __syncthreads();      // the stage is complete, and everybody has left the one that is filled next
        const int ahead = step + STAGES - 1;
        if (ahead < steps) {
            const int slot = ahead % STAGES;
            load_stage(ringA + slot * TILE_M * DEPTH, ringB + slot * DEPTH * TILE_N, a, b, M, N, K, m0, n0, ahead * DEPTH);
        }
        asm volatile("cp.async.commit_group;" ::: "memory");     // an empty group keeps the count even

        const __half* sa = ringA + step % STAGES * TILE_M * DEPTH;
        const __half* sb = ringB + step % STAGES * DEPTH * TILE_N;
#pragma unroll
        for (int kk = 0; kk < DEPTH; kk += 16) {
            unsigned fa[MI][4];
#pragma unroll
            for (int i = 0; i < MI; ++i) {
                const unsigned at = smem_addr(sa + place_a(wm + i * 16 + (lane & 15), (kk >> 3) + (lane >> 4)));
                asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                             : "=r"(fa[i][0]), "=r"(fa[i][1]), "=r"(fa[i][2]), "=r"(fa[i][3]) : "r"(at) : "memory");
            }
#pragma unroll
            for (int j = 0; j < NI; ++j) {
                unsigned fb[4];     // depths 0 and 8 of the left eight columns, then of the right ones
                const unsigned at = smem_addr(sb + place_b(kk + (lane & 15), ((wn + j * 16) >> 3) + (lane >> 4)));
                asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                             : "=r"(fb[0]), "=r"(fb[1]), "=r"(fb[2]), "=r"(fb[3]) : "r"(at) : "memory");
#pragma unroll
                for (int i = 0; i < MI; ++i)
#pragma unroll
                    for (int side = 0; side < 2; ++side) {
                        float* c = acc[i][2 * j + side];
                        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                                     : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                                     : "r"(fa[i][0]), "r"(fa[i][1]), "r"(fa[i][2]), "r"(fa[i][3]), "r"(fb[2 * side]), "r"(fb[2 * side + 1]));
                    }
            }
        }
    }

#pragma unroll
    for (int i = 0; i < MI; ++i)
#pragma unroll
        for (int j = 0; j < 2 * NI; ++j)
#pragma unroll
            for (int h = 0; h < 2; ++h) {
                const int r = m0 + wm + i * 16 + h * 8 + (lane >> 2), c = n0 + wn + j * 8 + (lane & 3) * 2;
                if (r >= M || c >= N) continue;
                __half* to = out + size_t(r) * N + c;
                const float lo = acc[i][j][2 * h], hi = acc[i][j][2 * h + 1];
                if (N % 2 == 0) {      // pairs are aligned, and none is cut by the edge
                    *reinterpret_cast<__half2*>(to) = __floats2half2_rn(lo, hi);
                } else {
                    to[0] = __float2half_rn(lo);
                    if (c + 1 < N) to[1] = __float2half_rn(hi);
                }
            }
}
