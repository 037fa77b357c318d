/* evoengine
name: bobbin_spans_rejoined
precision: fp16
summary: each query tile's keys are cut into spans, one block a span, double-buffered through registers; a second launch joins the spans
tunables:
  SPANS: [3, 2, 1, 4]
  JOIN_WARPS: [4, 8, 2]
let:
  KEY_TILES: ceil_div(S, 32)
  SPAN_TILES: ceil_div(KEY_TILES, SPANS)
  ROWS: B*H*S
  SHARED: 2*(32*(2*D + 16) + 80*D)
require:
  - SHARED <= MAX_SHARED_BYTES
scratch:
  part: {dtype: float32, shape: [SPANS, "B*H*S", D]}
  stat: {dtype: float32, shape: [SPANS, "B*H*S", 2]}
launches:
  - kernel: wind<D, causal>
    grid: [SPANS, "ceil_div(S, 64)", "B*H"]
    block: [128]
    shared: SHARED
    args: [q, k, v, part, stat, S, SPAN_TILES, scale]
  - kernel: rejoin<D>
    grid: ["ceil_div(ROWS, JOIN_WARPS)"]
    block: ["32*JOIN_WARPS"]
    args: [part, stat, out, ROWS]
*/
/*
 * wind:   4 warps, 16 queries each, 32 keys a step. K lies row by row in shared memory, V transposed, as pairs of
 *         keys, so that every fragment of either is one 32-bit load. Both have a pitch of 4 (mod 32)
 *         or 20 words, with which the 32 lanes of a fragment hit 32 banks.
 * rejoin: one warp a row.
 */
#include <cuda_fp16.h>

typedef unsigned int u32;
#define LOG2E 1.4426950408889634f
#define NEG_INF (-INFINITY)
#define VPITCH 20               /* words of a row of V^T: 16 pairs of keys and 4 to spare */
#define KPITCH(D) ((D) / 2 + 4) /* words of a row of K */

#define MMA16816(C, A, B0, B1)                                                                        \
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "                                 \
                 "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"                              \
                 : "+f"((C)[0]), "+f"((C)[1]), "+f"((C)[2]), "+f"((C)[3])                             \
                 : "r"((A)[0]), "r"((A)[1]), "r"((A)[2]), "r"((A)[3]), "r"(B0), "r"(B1))

static __device__ __forceinline__ u32 pack2(float lo, float hi) {
    __half2 h = __floats2half2_rn(lo, hi);
    return *reinterpret_cast<u32*>(&h);
}

template <int D> struct Spool {    // the tile under way from global to shared memory
    uint4 kr[D / 32], ve[D / 64], vo[D / 64];

    __device__ __forceinline__ void pull(const __half* kh, const __half* vh, int key0, int S) {
        const uint4 none = make_uint4(0, 0, 0, 0);
#pragma unroll
        for (int i = 0; i < D / 32; ++i) {
            int at = threadIdx.x + i * 128, key = key0 + at / (D / 8), c = at % (D / 8) * 8;
            kr[i] = key < S ? *reinterpret_cast<const uint4*>(kh + (size_t)key * D + c) : none;
        }
#pragma unroll
        for (int i = 0; i < D / 64; ++i) {    // lanes run over the pairs of keys, which are neighbours in V^T
            int at = threadIdx.x + i * 128, key = key0 + at % 16 * 2, c = at / 16 * 8;
            ve[i] = key < S ? *reinterpret_cast<const uint4*>(vh + (size_t)key * D + c) : none;
            vo[i] = key + 1 < S ? *reinterpret_cast<const uint4*>(vh + (size_t)(key + 1) * D + c) : none;
        }
    }
    __device__ __forceinline__ void drop(u32* ks, u32* vs) const {
#pragma unroll
        for (int i = 0; i < D / 32; ++i) {
            int at = threadIdx.x + i * 128;
            *reinterpret_cast<uint4*>(ks + at / (D / 8) * KPITCH(D) + at % (D / 8) * 4) = kr[i];
        }
#pragma unroll
        for (int i = 0; i < D / 64; ++i) {
            int at = threadIdx.x + i * 128, pair = at % 16, c = at / 16 * 8;
            const u32 e[4] = {ve[i].x, ve[i].y, ve[i].z, ve[i].w}, o[4] = {vo[i].x, vo[i].y, vo[i].z, vo[i].w};
#pragma unroll
            for (int j = 0; j < 4; ++j) {
                vs[(c + 2 * j) * VPITCH + pair] = __byte_perm(e[j], o[j], 0x5410);        // low halves
                vs[(c + 2 * j + 1) * VPITCH + pair] = __byte_perm(e[j], o[j], 0x7632);    // high halves
            }
        }
    }
};

template <int D, bool CAUSAL>
__global__ void __launch_bounds__(128)
wind(const __half* __restrict__ q, const __half* __restrict__ k, const __half* __restrict__ v, float* __restrict__ part,
     float* __restrict__ stat, int S, int span_tiles, float scale) {
    extern __shared__ __align__(16) u32 sm[];
    constexpr int KWORDS = 32 * KPITCH(D), BUFFER = KWORDS + D * VPITCH;
    const int lane = threadIdx.x & 31, g = lane >> 2, t = lane & 3;
    const int row0 = blockIdx.y * 64 + (threadIdx.x >> 5) * 16 + g;    // and row0 + 8
    const size_t base = (size_t)blockIdx.z * S;
    const __half *qh = q + base * D, *kh = k + base * D, *vh = v + base * D;

    u32 qf[D / 16][4];
#pragma unroll
    for (int c = 0; c < D / 16; ++c)
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            int row = row0 + i % 2 * 8;
            qf[c][i] = row < S ? *reinterpret_cast<const u32*>(qh + (size_t)row * D + c * 16 + i / 2 * 8 + t * 2) : 0u;
        }

    const int limit = CAUSAL ? min(S, (int)blockIdx.y * 64 + 64) : S;
    const int begin = blockIdx.x * span_tiles, stop = min(begin + span_tiles, (limit + 31) / 32);
    const float sl2 = scale * LOG2E;
    float o[D / 8][4], m[2] = {NEG_INF, NEG_INF}, l[2] = {0.f, 0.f};
#pragma unroll
    for (int n = 0; n < D / 8; ++n) o[n][0] = o[n][1] = o[n][2] = o[n][3] = 0.f;

    Spool<D> spool;
    if (begin < stop) {
        spool.pull(kh, vh, begin * 32, S);
        spool.drop(sm, sm + KWORDS);
    }
    __syncthreads();
    for (int tile = begin; tile < stop; ++tile) {
        const int phase = (tile - begin) & 1;
        const u32 *ks = sm + phase * BUFFER, *vs = ks + KWORDS;
        if (tile + 1 < stop) spool.pull(kh, vh, (tile + 1) * 32, S);

        float s[4][4] = {};
#pragma unroll
        for (int c = 0; c < D / 16; ++c)
#pragma unroll
            for (int n = 0; n < 4; ++n) {
                const u32* w = ks + (n * 8 + g) * KPITCH(D) + c * 8 + t;
                MMA16816(s[n], qf[c], w[0], w[4]);
            }

        u32 pf[4][2];
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            const int seen = (CAUSAL ? min(S, row0 + h * 8 + 1) : S) - tile * 32;
            float hi = m[h];
#pragma unroll
            for (int n = 0; n < 4; ++n)
#pragma unroll
                for (int e = 0; e < 2; ++e) {
                    float& x = s[n][h * 2 + e];
                    x = n * 8 + t * 2 + e < seen ? x * sl2 : NEG_INF;
                    hi = fmaxf(hi, x);
                }
            hi = fmaxf(hi, __shfl_xor_sync(0xffffffffu, hi, 1));
            hi = fmaxf(hi, __shfl_xor_sync(0xffffffffu, hi, 2));
            const float pivot = hi == NEG_INF ? 0.f : hi;    // a row may see nothing of this span yet
            const float shrink = exp2f(m[h] - pivot);
            m[h] = hi;
            l[h] *= shrink;
#pragma unroll
            for (int n = 0; n < D / 8; ++n) o[n][h * 2] *= shrink, o[n][h * 2 + 1] *= shrink;
#pragma unroll
            for (int n = 0; n < 4; ++n) {
                float a = exp2f(s[n][h * 2] - pivot), b = exp2f(s[n][h * 2 + 1] - pivot);
                l[h] += a + b;
                pf[n][h] = pack2(a, b);
            }
        }

#pragma unroll
        for (int j = 0; j < 2; ++j) {
            const u32 a[4] = {pf[2 * j][0], pf[2 * j][1], pf[2 * j + 1][0], pf[2 * j + 1][1]};
#pragma unroll
            for (int n = 0; n < D / 8; ++n) {
                const u32* w = vs + (n * 8 + g) * VPITCH + j * 8 + t;
                MMA16816(o[n], a, w[0], w[4]);
            }
        }

        if (tile + 1 < stop) {    // the other buffer: its readers passed the barrier of the step before
            u32* next = sm + (phase ^ 1) * BUFFER;
            spool.drop(next, next + KWORDS);
        }
        __syncthreads();
    }

#pragma unroll
    for (int h = 0; h < 2; ++h) {
        l[h] += __shfl_xor_sync(0xffffffffu, l[h], 1);
        l[h] += __shfl_xor_sync(0xffffffffu, l[h], 2);
        const int row = row0 + h * 8;
        if (row >= S) continue;
        const size_t slot = ((size_t)blockIdx.x * gridDim.z + blockIdx.z) * S + row;
        if (t == 0) *reinterpret_cast<float2*>(stat + slot * 2) = make_float2(m[h], l[h]);
        if (l[h] == 0.f) continue;    // nothing seen, nothing to join
#pragma unroll
        for (int n = 0; n < D / 8; ++n)
            *reinterpret_cast<float2*>(part + slot * D + n * 8 + t * 2) = make_float2(o[n][h * 2], o[n][h * 2 + 1]);
    }
}

/* A warp a row; lane i holds columns 2i and 2i + 1 of every 64. */
template <int D>
__global__ void __launch_bounds__(JOIN_WARPS * 32)
rejoin(const float* __restrict__ part, const float* __restrict__ stat, __half* __restrict__ out, int rows) {
    const int lane = threadIdx.x & 31;
    const int row = blockIdx.x * JOIN_WARPS + (threadIdx.x >> 5);
    if (row >= rows) return;

    float top = NEG_INF;
    for (int s = 0; s < SPANS; ++s) top = fmaxf(top, stat[((size_t)s * rows + row) * 2]);
    float2 sum[D / 64];
#pragma unroll
    for (int j = 0; j < D / 64; ++j) sum[j] = make_float2(0.f, 0.f);
    float whole = 0.f;
    for (int s = 0; s < SPANS; ++s) {
        const size_t slot = (size_t)s * rows + row;
        const float2 ml = *reinterpret_cast<const float2*>(stat + slot * 2);
        if (ml.y == 0.f) continue;    // its part was never written
        const float weight = exp2f(ml.x - top);
        whole += weight * ml.y;
#pragma unroll
        for (int j = 0; j < D / 64; ++j) {
            const float2 x = *reinterpret_cast<const float2*>(part + slot * D + j * 64 + lane * 2);
            sum[j].x += weight * x.x;
            sum[j].y += weight * x.y;
        }
    }
    const float inv = 1.f / whole;
#pragma unroll
    for (int j = 0; j < D / 64; ++j)
        *reinterpret_cast<__half2*>(out + (size_t)row * D + j * 64 + lane * 2) = __floats2half2_rn(sum[j].x * inv, sum[j].y * inv);
}
