/* evoengine
name: attn_twopass_queue
precision: fp16
summary: two passes over the keys (statistics, then normalised weights times V), jobs from a queue, operands of Q K^T straight from global memory
let:
  JOBS: "B*H*ceil_div(S, 32)"
scratch:
  queue: {dtype: int32, shape: [1], init: 0}
launches:
  - kernel: attn<D>
    grid: ["max(1, min(2*SM_COUNT, JOBS // 2))"]
    block: [128]
    args: [q, k, v, out, queue, JOBS, B*H, S, causal, scale]
*/
// A job is 32 queries of a head. Warp w has rows 16*(w/2).. of it. In Q K^T the two warps of the same
// rows take 16 keys each of every 32; in P V they take half of the channels each, for all 32 keys.
// With two passes a weight is final when it is formed, so no output is ever rescaled.
#include <cuda_fp16.h>
typedef unsigned int u32;
#define TQ 32                 // queries of a job
#define TK 32                 // keys of a step
#define LDP (TK + 8)          // halves; 20 words: the 8 rows of a fragment fall into different banks
#define NEG_INF (-INFINITY_F)
#define INFINITY_F __int_as_float(0x7f800000)
#define FOR(i, n) _Pragma("unroll") for (int i = 0; i < (n); ++i)

__device__ __forceinline__ void mma16816(float* c, const u32* a, u32 b0, u32 b1) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
__device__ __forceinline__ u32 word(const __half* p) { return *reinterpret_cast<const u32*>(p); }
// Two neighbouring channels of a row, zeros beyond the last row.
__device__ __forceinline__ u32 word_or_0(const __half* base, int row, int S, int D, int c) {
    return row < S ? __ldg(reinterpret_cast<const u32*>(base + size_t(row) * D + c)) : 0u;
}
// Joins two running pairs of maximum and sum; either may still be empty (-inf, 0).
__device__ __forceinline__ void join(float& m, float& l, float m2, float l2) {
    const float M = fmaxf(m, m2);
    if (M == NEG_INF) return;
    l = l * exp2f(m - M) + l2 * exp2f(m2 - M);
    m = M;
}

// Scores of 16 rows and 16 keys from k0 on, in log2 units, -inf where hidden: s[n][e] is row
// g + 8*(e/2), key k0 + 8*n + 2*t + e%2.
template <int D>
__device__ __forceinline__ void score(float (&s)[2][4], const u32 (&qf)[D / 16][4], const __half* kh, int k0, int S, const int (&lim)[2], float f, int g, int t) {
    FOR(n, 2) {
        FOR(e, 4) s[n][e] = 0.f;
        const int key = k0 + 8 * n + g;
        FOR(d, D / 16) mma16816(s[n], qf[d], word_or_0(kh, key, S, D, 16 * d + 2 * t), word_or_0(kh, key, S, D, 16 * d + 2 * t + 8));
        FOR(e, 4) s[n][e] = k0 + 8 * n + 2 * t + e % 2 < lim[e / 2] ? s[n][e] * f : NEG_INF;
    }
}

template <int D>
__global__ void __launch_bounds__(128) attn(const __half* __restrict__ q, const __half* __restrict__ k, const __half* __restrict__ v, __half* __restrict__ out,
                                            int* queue, int jobs, int heads, int S, bool causal, float scale) {
    __shared__ __align__(16) __half vt[D * LDP];       // [D][LDP] V transposed: keys side by side
    __shared__ __align__(16) __half pw[TQ * LDP];      // [TQ][LDP] weights
    __shared__ float2 st[2][TQ];                       // maximum and sum of each half of the keys
    __shared__ int job_s;
    const int w = threadIdx.x >> 5, lane = threadIdx.x & 31, g = lane >> 2, t = lane & 3;
    const int wr = (w >> 1) * 16, hf = w & 1;          // rows of the warp in the job; its half
    const float f = scale * 1.44269504f;

    for (;;) {
        __syncthreads();                               // all warps have left the job before
        if (threadIdx.x == 0) job_s = atomicAdd(queue, 1);
        __syncthreads();
        const int job = job_s;
        if (job >= jobs) return;
        // All heads of the last queries come first: with a causal mask these are the longest jobs.
        const int per_head = jobs / heads, q0 = (per_head - 1 - job / heads) * TQ;
        const size_t off = size_t(job % heads) * S * D;
        const __half *qh = q + off, *kh = k + off, *vh = v + off;
        const int r0 = q0 + wr + g, kend = causal ? min(S, q0 + TQ) : S;
        const int lim[2] = {causal ? min(S, r0 + 1) : S, causal ? min(S, r0 + 9) : S};

        u32 qf[D / 16][4];
        FOR(d, D / 16) FOR(i, 4) qf[d][i] = word_or_0(qh, r0 + i % 2 * 8, S, D, 16 * d + 2 * t + i / 2 * 8);

        // Pass 1: every lane keeps a maximum and a sum of its own columns; they meet at the end only.
        float m[2] = {NEG_INF, NEG_INF}, l[2] = {0.f, 0.f};
        for (int k0 = hf * 16; k0 < kend; k0 += TK) {
            float s[2][4];
            score<D>(s, qf, kh, k0, S, lim, f, g, t);
            FOR(r, 2) {
                const float a = fmaxf(fmaxf(s[0][2 * r], s[0][2 * r + 1]), fmaxf(s[1][2 * r], s[1][2 * r + 1]));
                if (a == NEG_INF) continue;
                float sum = 0.f;
                FOR(i, 4) sum += exp2f(s[i / 2][2 * r + i % 2] - a);
                join(m[r], l[r], a, sum);
            }
        }
        FOR(r, 2) {
            for (int x = 1; x <= 2; x <<= 1) {
                const float m2 = __shfl_xor_sync(~0u, m[r], x), l2 = __shfl_xor_sync(~0u, l[r], x);
                join(m[r], l[r], m2, l2);
            }
            if (t == 0) st[hf][wr + 8 * r + g] = make_float2(m[r], l[r]);
        }
        __syncthreads();
        FOR(r, 2) {
            const float2 o = st[hf ^ 1][wr + 8 * r + g];
            join(m[r], l[r], o.x, o.y);
        }
        const float inv[2] = {1.f / l[0], 1.f / l[1]};

        // Pass 2: the same scores again, now as weights that add up to 1.
        float acc[D / 16][4] = {};
        for (int k0 = 0; k0 < kend; k0 += TK) {
            for (int i = threadIdx.x; i < TK / 2 * (D / 8); i += 128) {   // 8 channels of two neighbouring keys
                const int n = i % (TK / 2) * 2, c = i / (TK / 2) * 8;
                u32 a[4], b[4];
                FOR(j, 4) {
                    a[j] = word_or_0(vh, k0 + n, S, D, c + 2 * j);
                    b[j] = word_or_0(vh, k0 + n + 1, S, D, c + 2 * j);
                }
                FOR(j, 8) *reinterpret_cast<u32*>(vt + (c + j) * LDP + n) = __byte_perm(a[j / 2], b[j / 2], j % 2 ? 0x7632 : 0x5410);
            }
            float s[2][4];
            score<D>(s, qf, kh, k0 + hf * 16, S, lim, f, g, t);
            FOR(i, 4) {
                const int n = i / 2, r = i % 2;
                const __half2 p = __floats2half2_rn(exp2f(s[n][2 * r] - m[r]) * inv[r], exp2f(s[n][2 * r + 1] - m[r]) * inv[r]);
                *reinterpret_cast<__half2*>(pw + (wr + 8 * r + g) * LDP + hf * 16 + 8 * n + 2 * t) = p;
            }
            __syncthreads();
            FOR(x, TK / 16) {
                const __half* row = pw + (wr + g) * LDP + 16 * x + 2 * t;
                const u32 a[4] = {word(row), word(row + 8 * LDP), word(row + 8), word(row + 8 * LDP + 8)};
                FOR(n, D / 16) {
                    const __half* col = vt + (hf * (D / 2) + 8 * n + g) * LDP + 16 * x + 2 * t;
                    mma16816(acc[n], a, word(col), word(col + 8));
                }
            }
            __syncthreads();                           // before the next step overwrites V and the weights
        }
        FOR(r, 2) {
            if (r0 + 8 * r >= S) continue;
            __half* o = out + off + size_t(r0 + 8 * r) * D + hf * (D / 2) + 2 * t;
            FOR(n, D / 16) *reinterpret_cast<__half2*>(o + 8 * n) = __floats2half2_rn(acc[n][2 * r], acc[n][2 * r + 1]);
        }
    }
}
