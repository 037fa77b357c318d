/* evoengine
name: attention_exchanged_peaks
precision: fp16
summary: 16 queries a block; the warps divide the keys of a tile for Q K^T and the columns for P V, exchanging row maxima and P in shared memory
tunables:
  NW: [4, 2]               # warps
  BANDS: [1, 2]            # bands of 16 keys of a warp in a tile
let:
  BN: 16 * NW * BANDS
  TILE: BN * (2*D + 16)
launches:
  - kernel: attn<D, causal>
    grid: ["ceil_div(S, 16)", "B*H"]
    block: [32*NW]
    shared: 2*TILE + 16 * (2*BN + 16)
    args: [q, k, v, out, S, scale]
*/
#include <cuda_fp16.h>

#define BN       (16 * NW * BANDS)
#define NEG_INF  __int_as_float(0xff800000)
#define ONES     0x3c003c00u                     /* two halves of 1.0 */
#define P_PITCH  (2 * BN + 16)

typedef unsigned int u32;

__device__ __forceinline__ void cp16(u32 to, const void* from, bool live) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(live ? 16 : 0) : "memory");
}
#define COMMIT()   asm volatile("cp.async.commit_group;" ::: "memory")
#define WAIT(n)    asm volatile("cp.async.wait_group " #n ";" ::: "memory")

__device__ __forceinline__ void ldsm(u32* r, u32 a) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(a) : "memory");
}
__device__ __forceinline__ void ldsm_t(u32* r, u32 a) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(a) : "memory");
}
__device__ __forceinline__ void hmma(float* c, const u32* a, u32 b0, u32 b1) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
__device__ __forceinline__ u32 h2(float lo, float hi) {
    __half2 h = __floats2half2_rn(lo, hi);
    return *(u32*)&h;
}

template <int D, bool CAUSAL>
__global__ void __launch_bounds__(32 * NW)
attn(const __half* q, const __half* k, const __half* v, __half* out, int S, float scale) {
    constexpr int PITCH = 2 * D + 16;                      /* bytes of a row of K or V */
    constexpr int COLS = D / NW;                           /* output columns of a warp */
    extern __shared__ __align__(128) unsigned char smem[];
    __shared__ float peaks[NW][16];
    unsigned char* const p_bytes = smem + 2 * BN * PITCH;
    const u32 ks = (u32)__cvta_generic_to_shared(smem), vs = ks + BN * PITCH;
    const u32 ps = (u32)__cvta_generic_to_shared(p_bytes);

    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, g = lane >> 2, tig = lane & 3;
    const int m0 = blockIdx.x * 16;                        /* this lane's rows: m0 + g, m0 + g + 8 */
    const size_t base = (size_t)blockIdx.y * S * D;
    const int end = CAUSAL ? min(S, m0 + 16) : S;
    const int tiles = (end + BN - 1) / BN;

    auto fetch = [&](u32 to, const __half* from, int t) {  /* one group, empty beyond the last tile */
        if (t < tiles)
            for (int i = threadIdx.x; i < BN * (D / 8); i += 32 * NW) {
                const int r = i / (D / 8), c = i % (D / 8), key = t * BN + r;
                cp16(to + r * PITCH + c * 16, from + base + (key < S ? (size_t)key * D + c * 8 : 0), key < S);
            }
        COMMIT();
    };
    fetch(ks, k, 0);

    u32 qa[D / 16][4];                                     /* Q straight from global memory, in the layout of operand A */
#pragma unroll
    for (int d = 0; d < D / 16; ++d)
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const int r = m0 + g + (i & 1) * 8, c = d * 16 + (i >> 1) * 8 + tig * 2;
            qa[d][i] = r < S ? *(const u32*)(q + base + (size_t)r * D + c) : 0u;
        }

    float o[COLS / 8][4] = {}, total[4] = {}, peak[2] = {NEG_INF, NEG_INF};
    const float to_log2 = scale * 1.44269504f;

    for (int t = 0; t < tiles; ++t) {
        fetch(vs, v, t);
        WAIT(1);                                           /* K of this tile; V may still be on its way */
        __syncthreads();

        float s[2 * BANDS][4] = {};
        float top[2] = {NEG_INF, NEG_INF};
#pragma unroll
        for (int b = 0; b < BANDS; ++b) {
            const int band = (b * NW + warp) * 16;         /* first key of the band in the tile */
#pragma unroll
            for (int d = 0; d < D / 16; ++d) {
                u32 f[4];
                ldsm(f, ks + (band + (lane & 7) + (lane >> 4) * 8) * PITCH + d * 32 + ((lane >> 3) & 1) * 16);
                hmma(s[2 * b], qa[d], f[0], f[1]);
                hmma(s[2 * b + 1], qa[d], f[2], f[3]);
            }
#pragma unroll
            for (int e = 0; e < 8; ++e) {
                const int key = t * BN + band + (e >> 2) * 8 + tig * 2 + (e & 1), half = (e >> 1) & 1;
                float* x = &s[2 * b + (e >> 2)][e & 3];
                *x = key < S && (!CAUSAL || key <= m0 + g + half * 8) ? *x * to_log2 : NEG_INF;
                top[half] = fmaxf(top[half], *x);
            }
        }
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            top[h] = fmaxf(top[h], __shfl_xor_sync(~0u, top[h], 1));
            top[h] = fmaxf(top[h], __shfl_xor_sync(~0u, top[h], 2));
            if (tig == 0) peaks[warp][g + h * 8] = top[h];
        }
        __syncthreads();                                   /* maxima of all warps are there, and K has been read */
        fetch(ks, k, t + 1);

#pragma unroll
        for (int h = 0; h < 2; ++h) {
            float all = peak[h];                           /* tile 0 has key 0, which every row sees: finite from then on */
            for (int w = 0; w < NW; ++w) all = fmaxf(all, peaks[w][g + h * 8]);
            const float shrink = exp2f(peak[h] - all);
            peak[h] = all;
            total[2 * h] *= shrink, total[2 * h + 1] *= shrink;
#pragma unroll
            for (int n = 0; n < COLS / 8; ++n) o[n][2 * h] *= shrink, o[n][2 * h + 1] *= shrink;
#pragma unroll
            for (int b = 0; b < 2 * BANDS; ++b) {
                const int key = (b / 2 * NW + warp) * 16 + b % 2 * 8 + tig * 2;
                *(u32*)(p_bytes + (g + h * 8) * P_PITCH + key * 2) = h2(exp2f(s[b][2 * h] - all), exp2f(s[b][2 * h + 1] - all));
            }
        }
        WAIT(1);                                           /* V of this tile; the next K may still be on its way */
        __syncthreads();

#pragma unroll
        for (int j = 0; j < BN / 16; ++j) {
            u32 p[4];
            ldsm(p, ps + (lane & 15) * P_PITCH + j * 32 + (lane >> 4) * 16);
            hmma(total, p, ONES, ONES);                    /* each column of this product is the sum of the row */
#pragma unroll
            for (int n = 0; n < COLS / 16; ++n) {
                u32 f[4];
                ldsm_t(f, vs + (j * 16 + (lane & 15)) * PITCH + (warp * COLS + n * 16) * 2 + (lane >> 4) * 16);
                hmma(o[2 * n], p, f[0], f[1]);
                hmma(o[2 * n + 1], p, f[2], f[3]);
            }
        }
        __syncthreads();                                   /* P and V have been read */
    }

#pragma unroll
    for (int h = 0; h < 2; ++h) {
        const int r = m0 + g + h * 8;
        if (r >= S) continue;
        const float inv = 1.0f / total[2 * h];
#pragma unroll
        for (int n = 0; n < COLS / 8; ++n)
            *(u32*)(out + base + (size_t)r * D + warp * COLS + n * 8 + tig * 2) = h2(o[n][2 * h] * inv, o[n][2 * h + 1] * inv);
    }
}
