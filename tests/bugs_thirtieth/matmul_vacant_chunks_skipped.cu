/* evoengine
name: matmul_vacant_chunks
precision: fp16
summary: a survey notes which 16-deep chunks of a band of a or b hold nothing but zeros; the WMMA product walks over the others only
let:
  BANDS_M: ceil_div(M, 64)
  BANDS_N: ceil_div(N, 64)
  WORDS: ceil_div(K, 128)         # a byte has a bit for each of 8 chunks
scratch:
  busy_a: {dtype: uint8, shape: [BANDS_M, WORDS]}
  busy_b: {dtype: uint8, shape: [BANDS_N, WORDS]}
launches:
  - kernel: survey
    grid: [WORDS, BANDS_M]
    block: 256
    args: [a, busy_a, M, K, K, 1, WORDS]
  - kernel: survey
    grid: [WORDS, BANDS_N]
    block: 256
    args: [b, busy_b, N, K, 1, N, WORDS]
  - kernel: hgemm_skip
    grid: [BANDS_N, BANDS_M]
    block: 128
    args: [a, b, busy_a, busy_b, out, M, N, K, WORDS]
*/

/*
 * HGEMM for activations with large empty regions (after ReLU, padded batches, pruned weights).
 * C = A * B, fp16 in, fp32 accumulate, fp16 out, everything row-major.
 *
 *   survey      1 CTA per band (64 rows of A, or 64 columns of B) and byte (128 of K), 1 warp per bit
 *   hgemm_skip  1 CTA per 64 x 64 tile, 4 warps as 2 x 2; k-steps of 16, double buffered smem;
 *               a step is done only if both bands are busy there
 */

#include <cuda_fp16.h>
#include <mma.h>

namespace wm = nvcuda::wmma;

#define BAND   64
#define CHUNK  16
#define NT     128
#define LDA    (CHUNK + 8)          /* +8 halves against bank conflicts */
#define LDB    (BAND + 8)
#define LDC    (BAND + 4)
#define DONE   (-1)

typedef wm::fragment<wm::matrix_a, 16, 16, 16, __half, wm::row_major> frag_a;
typedef wm::fragment<wm::matrix_b, 16, 16, 16, __half, wm::row_major> frag_b;
typedef wm::fragment<wm::accumulator, 16, 16, 16, float> frag_c;

/* element (o, k) of the band's matrix is X[o * so + k * sk], with o < outer and k < K */
extern "C" __global__ void __launch_bounds__(256)
survey(const __half *__restrict__ X, unsigned char *__restrict__ busy, int outer, int K, int so, int sk, int words)
{
    __shared__ unsigned int bits;
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    const int k0 = (blockIdx.x * 8 + warp) * CHUNK;
    const int o0 = blockIdx.y * BAND;

    if (threadIdx.x == 0)
        bits = 0;
    __syncthreads();

    int found = 0;
    for (int e = lane; e < BAND * CHUNK; e += 32) {
        /* the faster index is the one that is contiguous in memory */
        const int o = o0 + (sk == 1 ? e / CHUNK : e % BAND);
        const int k = k0 + (sk == 1 ? e % CHUNK : e / BAND);
        if (o < outer && k < K)
            found |= __half_as_ushort(X[(size_t)o * so + (size_t)k * sk]) & 0x7fff;     /* -0 is a zero, too */
    }
    if (__any_sync(0xffffffffu, found != 0) && lane == 0)
        atomicOr(&bits, 1u << warp);
    __syncthreads();
    if (threadIdx.x == 0)
        busy[(size_t)blockIdx.y * words + blockIdx.x] = (unsigned char)bits;
}

/* Where both bands are busy, chunk after chunk; the same in all threads of the CTA. */
struct walk {
    const unsigned char *ma, *mb;
    int words, w;
    unsigned int bits;

    __device__ __forceinline__ int next()
    {
        while (bits == 0) {
            if (++w >= words)
                return DONE;
            bits = ma[w] & mb[w];
        }
        const int bit = __ffs(bits) - 1;
        bits &= bits - 1;
        return (w * 8 + bit) * CHUNK;
    }
};

/* 8 consecutive halves of one row, zero filled */
static __device__ __forceinline__ uint4 ldg8(const __half *p, int rows, int ld, int r, int c)
{
    union { uint4 v; unsigned short h[8]; } u;
    u.v = make_uint4(0, 0, 0, 0);
    if (r >= rows || c >= ld)
        return u.v;
    p += (size_t)r * ld + c;
    if ((ld & 7) == 0) {
        u.v = *(const uint4 *)p;
    } else {
#pragma unroll
        for (int i = 0; i < 8; i++)
            if (c + i < ld)
                u.h[i] = __half_as_ushort(p[i]);
    }
    return u.v;
}

extern "C" __global__ void __launch_bounds__(NT)
hgemm_skip(const __half *__restrict__ A, const __half *__restrict__ B,
           const unsigned char *__restrict__ busy_a, const unsigned char *__restrict__ busy_b,
           __half *__restrict__ C, int M, int N, int K, int words)
{
    __shared__ __align__(128) __half sA[2][BAND * LDA];
    __shared__ __align__(128) __half sB[2][CHUNK * LDB];
    __shared__ __align__(128) float  sC[BAND * LDC];

    const int tid = threadIdx.x, warp = tid >> 5;
    const int wr = (warp >> 1) * 32, wc = (warp & 1) * 32;
    const int m0 = blockIdx.y * BAND, n0 = blockIdx.x * BAND;

    /* a thread moves one 16-byte vector of either tile: 64 x 2 of A, 16 x 8 of B */
    const int ar = tid >> 1, ac = (tid & 1) * 8;
    const int br = tid >> 3, bc = (tid & 7) * 8;

    frag_c acc[2][2];
#pragma unroll
    for (int i = 0; i < 4; i++)
        wm::fill_fragment(acc[i >> 1][i & 1], 0.0f);

    walk way = { busy_a + (size_t)blockIdx.y * words, busy_b + (size_t)blockIdx.x * words, words, -1, 0 };
    uint4 va, vb;

#define LOAD(k0)                                        \
    do {                                                \
        va = ldg8(A, M, K, m0 + ar, (k0) + ac);         \
        vb = ldg8(B, K, N, (k0) + br, n0 + bc);         \
    } while (0)

#define STASH(s)                                        \
    do {                                                \
        *(uint4 *)&sA[s][ar * LDA + ac] = va;           \
        *(uint4 *)&sB[s][br * LDB + bc] = vb;           \
    } while (0)

    int stage = 0;
    int k = way.next();
    if (k != DONE) {
        LOAD(k);
        STASH(0);
    }
    __syncthreads();

    while (k != DONE) {
        k = way.next();
        if (k != DONE)
            LOAD(k);

        frag_a fa[2];
        frag_b fb[2];
#pragma unroll
        for (int i = 0; i < 2; i++) {
            wm::load_matrix_sync(fa[i], &sA[stage][(wr + 16 * i) * LDA], LDA);
            wm::load_matrix_sync(fb[i], &sB[stage][wc + 16 * i], LDB);
        }
#pragma unroll
        for (int i = 0; i < 2; i++)
#pragma unroll
            for (int j = 0; j < 2; j++)
                wm::mma_sync(acc[i][j], fa[i], fb[j], acc[i][j]);

        stage ^= 1;
        if (k != DONE)
            STASH(stage);       /* was read one step ago, with a barrier in between */
        __syncthreads();
    }

#pragma unroll
    for (int i = 0; i < 2; i++)
#pragma unroll
        for (int j = 0; j < 2; j++)
            wm::store_matrix_sync(&sC[(wr + 16 * i) * LDC + wc + 16 * j], acc[i][j], LDC, wm::mem_row_major);
    __syncthreads();

    for (int e = tid; e < BAND * BAND; e += NT) {
        const int r = e / BAND, c = e % BAND;
        if (m0 + r < M && n0 + c < N)
            C[(size_t)(m0 + r) * N + n0 + c] = __float2half_rn(sC[r * LDC + c]);
    }
}
