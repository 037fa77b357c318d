/* evoengine
name: matmul_rotated_depth
precision: fp16
summary: every block starts at another slice of the depth and wraps round; cp.async in two stages, wmma, patches a warp
tunables:
  BK: [32, 16, 64]
let:
  SLICES: ceil_div(K, BK)
  ALIGNED: 1 if K % 8 == 0 and N % 8 == 0 else 0
  OPERANDS: 2 * (64 * (BK + 8) + BK * 72)
  PATCHES: 4 * 16 * 20
launches:
  - kernel: rotated_depth_gemm<ALIGNED>
    grid: ["ceil_div(N, 64)", "ceil_div(M, 64)"]
    block: [32, 4]
    shared: 2 * OPERANDS + 4 * PATCHES
    args: [a, b, out, M, N, K, SLICES]
*/
#include <cuda_fp16.h>
#include <mma.h>

using namespace nvcuda;

#define BM        64
#define BN        64
#define LDA       (BK + 8)                  /* halves */
#define LDB       (BN + 8)                  /* halves */
#define STAGE     (BM * LDA + BK * LDB)     /* halves: a tile of a, a tile of b */
#define LDP       20                        /* floats */
#define NTHREADS  128

typedef wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> frag_a;
typedef wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::row_major> frag_b;
typedef wmma::fragment<wmma::accumulator, 16, 16, 16, float> frag_c;

/* 16 bytes to shared memory, of which `bytes` come from src and the others are zeros */
static __device__ void
cp_async16(half *dst, const half *src, int bytes)
{
    unsigned at = (unsigned)__cvta_generic_to_shared(dst);

    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                 :: "r"(at), "l"(src), "r"(bytes) : "memory");
}

static __device__ void cp_commit(void)       { asm volatile("cp.async.commit_group;" ::: "memory"); }
static __device__ void cp_wait_but_one(void) { asm volatile("cp.async.wait_group 1;" ::: "memory"); }
static __device__ void cp_wait_all(void)     { asm volatile("cp.async.wait_group 0;" ::: "memory"); }

/* dst[rows][ld] <- src[r0 + ...][c0 + ...], zeros outside of src */
template <int ALIGNED>
static __device__ void
copy_tile(half *dst, int ld, int rows, int cols,
          const half *src, int r0, int c0, int src_rows, int src_cols, int tid)
{
    int i;

    if (ALIGNED) {
        for (i = tid; i < rows * cols / 8; i += NTHREADS) {
            int r = i / (cols / 8), c = i % (cols / 8) * 8;
            bool inside = r0 + r < src_rows && c0 + c < src_cols;
            const half *from = inside ? src + (size_t)(r0 + r) * src_cols + c0 + c : src;

            cp_async16(dst + r * ld + c, from, inside ? 16 : 0);
        }
    } else {
        for (i = tid; i < rows * cols; i += NTHREADS) {
            int r = i / cols, c = i % cols;
            half v = __float2half(0.0f);

            if (r0 + r < src_rows && c0 + c < src_cols)
                v = src[(size_t)(r0 + r) * src_cols + c0 + c];
            dst[r * ld + c] = v;
        }
    }
}

/* acc += a tile [32 rows from row][BK] * b tile [BK][32 columns from col] */
static __device__ void
multiply_tile(frag_c (&acc)[2][2], const half *a_tile, const half *b_tile, int row, int col)
{
    frag_a fa[2];
    frag_b fb[2];
    int kk, i, j;

    for (kk = 0; kk < BK; kk += 16) {
        for (i = 0; i < 2; i++) {
            wmma::load_matrix_sync(fa[i], a_tile + (row + 16 * i) * LDA + kk, LDA);
            wmma::load_matrix_sync(fb[i], b_tile + kk * LDB + col + 16 * i, LDB);
        }
        for (i = 0; i < 2; i++)
            for (j = 0; j < 2; j++)
                wmma::mma_sync(acc[i][j], fa[i], fb[j], acc[i][j]);
    }
}

/*
 * Blocks that start together would all ask for the same slices of a and b at the same moment. Here
 * neighbours begin at different slices, run to the end of the depth, and go on from its beginning
 * until they have had each slice once. The order of the sums differs from block to block, but it is
 * the same in every run.
 */
template <int ALIGNED>
__global__ void __launch_bounds__(NTHREADS)
rotated_depth_gemm(const half *a, const half *b, half *out, int M, int N, int K, int slices)
{
    extern __shared__ __align__(128) unsigned char smem[];
    half *stages = reinterpret_cast<half *>(smem);                     /* [2][STAGE] */
    float *patches = reinterpret_cast<float *>(stages + 2 * STAGE);    /* [4][16][LDP] */

    const int lane = threadIdx.x;
    const int warp = threadIdx.y;
    const int tid = warp * 32 + lane;
    const int m0 = blockIdx.y * BM;
    const int n0 = blockIdx.x * BN;
    const int warp_row = warp / 2 * 32;
    const int warp_col = warp % 2 * 32;
    float *patch = patches + warp * 16 * LDP;
    frag_c acc[2][2];
    int step, i, j, e;

    for (i = 0; i < 2; i++)
        for (j = 0; j < 2; j++)
            wmma::fill_fragment(acc[i][j], 0.0f);

    auto fill = [&](int stage, int slice) {
        half *tile = stages + stage * STAGE;

        copy_tile<ALIGNED>(tile, LDA, BM, BK, a, m0, slice * BK, M, K, tid);
        copy_tile<ALIGNED>(tile + BM * LDA, LDB, BK, BN, b, slice * BK, n0, K, N, tid);
        cp_commit();
    };

    const int first = (blockIdx.x + blockIdx.y) % slices;
    int slice = first;

    fill(0, first);
    for (step = 0; step < slices; step++) {
        const half *tile = stages + step % 2 * STAGE;

        if (step + 1 < slices) {
            slice = slice + 1 < slices ? slice + 1 : 0;
            fill((step + 1) % 2, slice);
            cp_wait_but_one();   /* the slice of this step; the next one may be under way */
        } else {
            cp_wait_all();
        }
        __syncthreads();
        multiply_tile(acc, tile, tile + BM * LDA, warp_row, warp_col);
        __syncthreads();
    }

    /* a 16 x 16 patch at a time through shared memory, half a row a lane */
    for (i = 0; i < 2; i++) {
        for (j = 0; j < 2; j++) {
            int row = m0 + warp_row + 16 * i + lane / 2;
            int col = n0 + warp_col + 16 * j + lane % 2 * 8;
            const float *from = patch + lane / 2 * LDP + lane % 2 * 8;

            wmma::store_matrix_sync(patch, acc[i][j], LDP, wmma::mem_row_major);
            __syncwarp();
            for (e = 0; e < 8; e++)
                if (row < M && col + e < N)
                    out[(size_t)row * N + col + e] = __float2half_rn(from[e]);
            __syncwarp();   /* the patch is used again */
        }
    }
}
