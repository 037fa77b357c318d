/* evoengine
name: gemm_ring_roles
precision: fp16
summary: persistent blocks; two warps copy tiles into a ring, four multiply them, named barriers between the two roles
tunables:
  STAGES: [3, 4, 2]
  GROUP: [4, 8, 2]       # rows of tiles that are walked together, for the cache
let:
  TM: ceil_div(M, 64)
  TN: ceil_div(N, 96)
  # two tiles a block at least: the copies for the next one run while the last one is stored
  BLOCKS: min(ceil_div(TM * TN, 2), 2 * SM_COUNT)
launches:
  - kernel: gemm
    grid: [BLOCKS]
    block: [192]
    shared: STAGES * 2 * (64 * 40 + 32 * 104)
    args: [a, b, out, M, N, K]
*/
#include <cuda_fp16.h>

#define BM 64
#define BN 96
#define BK 32
#define LDA (BK + 8)
#define LDB (BN + 8)
#define STAGE_ELEMS (BM * LDA + BK * LDB)
#define N_CONS 128
#define N_PROD 64
#define N_ALL (N_CONS + N_PROD)
// Barrier 0 belongs to __syncthreads.
#define FULL(s) (1 + (s))
#define FREE(s) (1 + STAGES + (s))

static __device__ __forceinline__ void bar_wait(int id) { asm volatile("bar.sync %0, %1;" ::"r"(id), "n"(N_ALL) : "memory"); }
static __device__ __forceinline__ void bar_post(int id) { asm volatile("bar.arrive %0, %1;" ::"r"(id), "n"(N_ALL) : "memory"); }

static __device__ __forceinline__ void cp16(unsigned dst, const void* src, int n) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(dst), "l"(src), "r"(n) : "memory");
}

static __device__ __forceinline__ void ldsm4(unsigned* r, unsigned p) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(p) : "memory");
}
static __device__ __forceinline__ void ldsm4t(unsigned* r, unsigned p) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(p) : "memory");
}
static __device__ __forceinline__ void mma(float* d, const unsigned* a, const unsigned* b) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

// Tile number -> its corner. GROUP rows of tiles are walked column by column, the last group may be lower.
static __device__ __forceinline__ void corner(int t, int tm, int tn, int& m0, int& n0) {
    const int per = GROUP * tn, g = t / per, first = g * GROUP;
    const int h = min(GROUP, tm - first), u = t - g * per;
    m0 = (first + u % h) * BM;
    n0 = u / h * BN;
}

// rows x cols of src (ld = sc), from (r0, c0), into dst. What lies outside becomes zero.
template <int ROWS, int COLS, int LD>
static __device__ __forceinline__ void copy_tile(__half* dst, const __half* src, int sr, int sc, int r0, int c0, int t) {
    if (sc % 8 == 0) {
        const unsigned base = __cvta_generic_to_shared(dst);
        for (int i = t; i < ROWS * COLS / 8; i += N_PROD) {
            const int r = i / (COLS / 8), c = i % (COLS / 8) * 8;
            const bool in = r0 + r < sr && c0 + c < sc;
            cp16(base + (r * LD + c) * 2, in ? src + size_t(r0 + r) * sc + c0 + c : src, in ? 16 : 0);
        }
    } else {   // rows that start anywhere: no 16-byte copies
        for (int i = t; i < ROWS * COLS; i += N_PROD) {
            const int r = i / COLS, c = i % COLS;
            dst[r * LD + c] = r0 + r < sr && c0 + c < sc ? src[size_t(r0 + r) * sc + c0 + c] : __ushort_as_half(0);
        }
    }
}

static __device__ void produce(__half* ring, const __half* a, const __half* b, int M, int N, int K, int tm, int tn, int t) {
    int it = 0;     // counts the steps of all tiles: the ring does not start anew with a tile
    for (int tile = blockIdx.x; tile < tm * tn; tile += gridDim.x) {
        int m0, n0;
        corner(tile, tm, tn, m0, n0);
        for (int k = 0; k < K; k += BK, ++it) {
            const int s = it % STAGES;
            if (it >= STAGES) bar_wait(FREE(s));
            __half* sa = ring + s * STAGE_ELEMS;
            copy_tile<BM, BK, LDA>(sa, a, M, K, m0, k, t);
            copy_tile<BK, BN, LDB>(sa + BM * LDA, b, K, N, k, n0, t);
            asm volatile("cp.async.commit_group;" ::: "memory");
            // The step before this one has landed; the newest one stays on its way.
            asm volatile("cp.async.wait_group 1;" ::: "memory");
            if (it > 0) bar_post(FULL((it - 1) % STAGES));
        }
    }
    asm volatile("cp.async.wait_group 0;" ::: "memory");
    bar_post(FULL((it - 1) % STAGES));
}

static __device__ void consume(__half* ring, __half* out, int M, int N, int K, int tm, int tn, int t) {
    const int lane = t & 31, wm = (t >> 5 & 1) * 32, wn = (t >> 6) * 48;
    const int nk = (K + BK - 1) / BK;
    const int mine = (tm * tn - int(blockIdx.x) + int(gridDim.x) - 1) / int(gridDim.x);
    const int total = mine * nk;
    const int lr = lane & 15, lc = (lane >> 4) * 8;   // the row of 8 halves that this lane names to ldmatrix
    int it = 0;
    for (int tile = blockIdx.x; tile < tm * tn; tile += gridDim.x) {
        int m0, n0;
        corner(tile, tm, tn, m0, n0);
        float d[2][6][4];
        for (int i = 0; i < 48; ++i) (&d[0][0][0])[i] = 0.0f;
        for (int kt = 0; kt < nk; ++kt, ++it) {
            const int s = it % STAGES;
            bar_wait(FULL(s));
            const unsigned sa = __cvta_generic_to_shared(ring + s * STAGE_ELEMS), sb = sa + BM * LDA * 2;
#pragma unroll
            for (int k = 0; k < BK; k += 16) {
                unsigned fa[2][4], fb[3][4];
                for (int i = 0; i < 2; ++i) ldsm4(fa[i], sa + ((wm + i * 16 + lr) * LDA + k + lc) * 2);
                for (int j = 0; j < 3; ++j) ldsm4t(fb[j], sb + ((k + lr) * LDB + wn + j * 16 + lc) * 2);
                for (int i = 0; i < 2; ++i)
                    for (int j = 0; j < 6; ++j) mma(d[i][j], fa[i], &fb[j / 2][j % 2 * 2]);
            }
            if (it + STAGES < total) bar_post(FREE(s));   // nobody waits for the last ones
        }
        const int r0 = m0 + wm + lane / 4, c0 = n0 + wn + lane % 4 * 2;
        for (int i = 0; i < 2; ++i)
            for (int j = 0; j < 6; ++j)
                for (int e = 0; e < 4; ++e) {
                    const int r = r0 + i * 16 + (e >> 1) * 8, c = c0 + j * 8 + (e & 1);
                    if (r < M && c < N) out[size_t(r) * N + c] = __float2half_rn(d[i][j][e]);
                }
    }
}

extern "C" __global__ void __launch_bounds__(N_ALL)
gemm(const __half* __restrict__ a, const __half* __restrict__ b, __half* __restrict__ out, int M, int N, int K) {
    extern __shared__ __align__(128) unsigned char smem[];
    __half* ring = reinterpret_cast<__half*>(smem);
    const int tm = (M + BM - 1) / BM, tn = (N + BN - 1) / BN, t = threadIdx.x;
    if (t < N_CONS) consume(ring, out, M, N, K, tm, tn, t);
    else produce(ring, a, b, M, N, K, tm, tn, t - N_CONS);
}
