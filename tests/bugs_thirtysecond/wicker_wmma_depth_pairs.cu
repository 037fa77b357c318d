/* evoengine
name: wicker_wmma_depth_pairs
precision: fp16
summary: WMMA, eight warps of which two groups of four share the depth of a slab; a block takes several tiles
tunables:
  TILES_PER_BLOCK: [2, 1, 4]
let:
  DOWN: ceil_div(M, 64)
  ACROSS: ceil_div(N, 96)
  SLABS_BYTES: 2 * 2 * (64 * 72 + 64 * 104)
  SUMS_BYTES: 4 * 64 * 100
launches:
  - kernel: wicker
    grid: ["ceil_div(DOWN * ACROSS, TILES_PER_BLOCK)"]
    block: [256]
    shared: max(SLABS_BYTES, SUMS_BYTES)
    args: [a, b, out, M, N, K, DOWN * ACROSS, ACROSS]
*/

/*
 * Tile of C: 64 x 96.  Slab of depth: 64, double buffered, next one waits in registers.
 *
 *   warps 0-3  (group 0): depth  0..31 of each slab
 *   warps 4-7  (group 1): depth 32..63 of each slab
 *
 * Within its group a warp owns 32 x 48 of the tile (2 x 3 fragments).  After the last slab
 * group 0 hands over its sums in shared memory and group 1 adds its own.
 */

#include <cuda_fp16.h>
#include <mma.h>

using namespace nvcuda::wmma;

#define TM 64
#define TN 96
#define TK 64
#define GROUP_K (TK / 2)
#define LDA_S (TK + 8)
#define LDB_S (TN + 8)
#define LDC_S (TN + 4)
#define NTHREADS 256
#define A_VECS (TM * TK / 8 / NTHREADS)   /* 2 */
#define B_VECS (TK * TN / 8 / NTHREADS)   /* 3 */
#define SLAB (TM * LDA_S + TK * LDB_S)    /* halves of one buffer */

struct Prefetched {
    uint4 a[A_VECS];
    uint4 b[B_VECS];
};

/* Eight neighbours of a row, zero outside of the matrix. */
static __device__ __forceinline__ uint4 load8(const half* __restrict__ p, int nrows, int ncols, int r, int c)
{
    uint4 v = make_uint4(0u, 0u, 0u, 0u);
    if (r >= nrows || c >= ncols) return v;
    const half* src = p + (size_t)r * ncols + c;
    if ((ncols & 7) == 0) return __ldg((const uint4*)src);
    unsigned short h[8];
#pragma unroll
    for (int i = 0; i < 8; i++) h[i] = c + i < ncols ? __half_as_ushort(src[i]) : (unsigned short)0;
    v.x = h[0] | (unsigned)h[1] << 16;
    v.y = h[2] | (unsigned)h[3] << 16;
    v.z = h[4] | (unsigned)h[5] << 16;
    v.w = h[6] | (unsigned)h[7] << 16;
    return v;
}

static __device__ __forceinline__ void fetch(Prefetched& regs, const half* __restrict__ a, const half* __restrict__ b,
                                             int M, int N, int K, int m0, int n0, int k0)
{
#pragma unroll
    for (int v = 0; v < A_VECS; v++) {
        int i = v * NTHREADS + threadIdx.x;
        regs.a[v] = load8(a, M, K, m0 + i / (TK / 8), k0 + i % (TK / 8) * 8);
    }
#pragma unroll
    for (int v = 0; v < B_VECS; v++) {
        int i = v * NTHREADS + threadIdx.x;
        regs.b[v] = load8(b, K, N, k0 + i / (TN / 8), n0 + i % (TN / 8) * 8);
    }
}

static __device__ __forceinline__ void deposit(half* slab, const Prefetched& regs)
{
    half* sa = slab;
    half* sb = slab + TM * LDA_S;
#pragma unroll
    for (int v = 0; v < A_VECS; v++) {
        int i = v * NTHREADS + threadIdx.x;
        *(uint4*)(sa + i / (TK / 8) * LDA_S + i % (TK / 8) * 8) = regs.a[v];
    }
#pragma unroll
    for (int v = 0; v < B_VECS; v++) {
        int i = v * NTHREADS + threadIdx.x;
        *(uint4*)(sb + i / (TN / 8) * LDB_S + i % (TN / 8) * 8) = regs.b[v];
    }
}

extern "C" __global__ void __launch_bounds__(NTHREADS)
wicker(const half* __restrict__ a, const half* __restrict__ b, half* __restrict__ out,
       int M, int N, int K, int tiles, int across)
{
    extern __shared__ __align__(128) unsigned char smem[];
    half* slabs = (half*)smem;     /* two of them, while the depth is walked */
    float* sums = (float*)smem;    /* afterwards: the tile, 64 x 100 floats */

    const int warp = threadIdx.x >> 5;
    const int group = warp >> 2;
    const int wm = ((warp >> 1) & 1) * 32;
    const int wn = (warp & 1) * 48;
    const int nslabs = (K + TK - 1) / TK;

    Prefetched regs;
    fragment<accumulator, 16, 16, 16, float> acc[2][3];

    for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        const int m0 = tile / across * TM;
        const int n0 = tile % across * TN;

        for (int i = 0; i < 2; i++)
            for (int j = 0; j < 3; j++) fill_fragment(acc[i][j], 0.0f);

        fetch(regs, a, b, M, N, K, m0, n0, 0);
        deposit(slabs, regs);
        __syncthreads();

        for (int s = 0; s < nslabs; s++) {
            const bool more = s + 1 < nslabs;
            if (more) fetch(regs, a, b, M, N, K, m0, n0, (s + 1) * TK);

            const half* sa = slabs + (s & 1) * SLAB;
            const half* sb = sa + TM * LDA_S;
#pragma unroll
            for (int k = 0; k < GROUP_K; k += 16) {
                const int kk = group * GROUP_K + k;
                fragment<matrix_a, 16, 16, 16, half, row_major> fa[2];
                fragment<matrix_b, 16, 16, 16, half, row_major> fb;
#pragma unroll
                for (int i = 0; i < 2; i++) load_matrix_sync(fa[i], sa + (wm + i * 16) * LDA_S + kk, LDA_S);
#pragma unroll
                for (int j = 0; j < 3; j++) {
                    load_matrix_sync(fb, sb + kk * LDB_S + wn + j * 16, LDB_S);
#pragma unroll
                    for (int i = 0; i < 2; i++) mma_sync(acc[i][j], fa[i], fb, acc[i][j]);
                }
            }

            if (more) deposit(slabs + ((s + 1) & 1) * SLAB, regs);
            __syncthreads();
        }

        /* group 0 hands over, group 1 adds */
        if (group == 0) {
            for (int i = 0; i < 2; i++)
                for (int j = 0; j < 3; j++)
                    store_matrix_sync(sums + (wm + i * 16) * LDC_S + wn + j * 16, acc[i][j], LDC_S, mem_row_major);
        }
        __syncthreads();
        if (group == 1) {
            fragment<accumulator, 16, 16, 16, float> other;
            for (int i = 0; i < 2; i++)
                for (int j = 0; j < 3; j++) {
                    float* at = sums + (wm + i * 16) * LDC_S + wn + j * 16;
                    load_matrix_sync(other, at, LDC_S, mem_row_major);
                    for (int e = 0; e < other.num_elements; e++) other.x[e] += acc[i][j].x[e];
                    store_matrix_sync(at, other, LDC_S, mem_row_major);
                }
        }
        __syncthreads();

        for (int i = threadIdx.x; i < TM * TN / 2; i += NTHREADS) {
            const int r = i / (TN / 2), c = i % (TN / 2) * 2;
            if (m0 + r >= M || n0 + c >= N) continue;
            const float2 pair = *(const float2*)(sums + r * LDC_S + c);
            half* dst = out + (size_t)(m0 + r) * N + n0 + c;
            if ((N & 1) == 0) {
                *(half2*)dst = __floats2half2_rn(pair.x, pair.y);
            } else {
                dst[0] = __float2half(pair.x);
                if (n0 + c + 1 < N) dst[1] = __float2half(pair.y);
            }
        }
        __syncthreads();    /* the next tile's slabs lie over the sums */
    }
}
