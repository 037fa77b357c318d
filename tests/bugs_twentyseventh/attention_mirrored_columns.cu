/* evoengine
name: attention_mirrored_columns
precision: fp16
summary: transposed products on mma.sync; a first sweep over the keys finds each query's logarithm of the sum, a second the output
tunables:
  NWARPS: [4, 2]                # 16 queries each
  BK: [32, 16, 64]              # keys of a tile
let:
  QB: 16 * NWARPS
  QTILES: ceil_div(S, QB)
  SMEM: 8 * BK * (D + 8)
launches:
  - kernel: two_sweeps<D, causal>
    grid: ["ceil_div(QTILES, 2)", "B*H"]
    block: ["32*NWARPS"]
    shared: SMEM
    args: [q, k, v, out, S, QTILES, scale]
*/
// S^T = K Q^T and O^T = V^T P^T: queries are columns, so that a lane meets keys down its registers and its statistics
// need no exchange before the end of the first sweep. A block takes a query tile from the front and its mirror image
// from the back, which evens out the work under a causal mask.
#include <cuda_fp16.h>
typedef unsigned int u32;
__device__ __forceinline__ u32 smem_addr(const void* p) { return (u32)__cvta_generic_to_shared(p); }
__device__ __forceinline__ void cp16(void* dst, const void* src, bool valid) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(smem_addr(dst)), "l"(src), "r"(valid ? 16 : 0) : "memory");
}
#define LDSM4(R, P, TR)                                                                        \
    asm volatile("ldmatrix.sync.aligned.m8n8.x4" TR ".shared.b16 {%0,%1,%2,%3}, [%4];"          \
                 : "=r"((R)[0]), "=r"((R)[1]), "=r"((R)[2]), "=r"((R)[3]) : "r"(smem_addr(P)) : "memory")

__device__ __forceinline__ void mma16816(float* c, const u32* a, const u32* b) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
// Two neighbours of a row of an 8x8 matrix that is spread over the warp, rounded to half, become two of a column.
__device__ __forceinline__ u32 pack_transposed(float x, float y) {
    __half2 h = __floats2half2_rn(x, y);
    u32 r;
    asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(r) : "r"(*reinterpret_cast<u32*>(&h)));
    return r;
}
// The sum of 2^(f * (score - peak)) over the scores seen so far.
struct Stat {
    float peak = -INFINITY, sum = 0.f;
    __device__ void take(const Stat& other, float f) {
        const float p = fmaxf(peak, other.peak);
        if (p == -INFINITY) return;            // neither has seen a key
        sum = sum * exp2f(f * (peak - p)) + other.sum * exp2f(f * (other.peak - p));
        peak = p;
    }
};

template <int D, bool CAUSAL>
__device__ void query_tile(const __half* q, const __half* k, const __half* v, __half* out, int S, int tile, float f, __half* smem) {
    constexpr int LD = D + 8, NTHR = 32 * NWARPS, VEC = D / 8, QB = 16 * NWARPS;
    const int lane = threadIdx.x & 31, g = lane >> 2, t = lane & 3;
    const int q0 = tile * QB + (threadIdx.x >> 5) * 16;
    const int kend = CAUSAL ? min(S, tile * QB + QB) : S;
    const int nk = (kend + BK - 1) / BK;

    // Steps [0, nk) bring K alone, steps [nk, 2 nk) K and V. Two buffers, each of a K and a V tile.
    auto bring = [&](int step) {
        if (step < 2 * nk) {
            const int key0 = step % nk * BK;
            __half* kb = smem + (step & 1) * 2 * BK * LD;
            for (int i = threadIdx.x; i < BK * VEC; i += NTHR) {
                const int r = i / VEC, c = i % VEC * 8;
                const bool valid = key0 + r < S;
                const size_t src = valid ? size_t(key0 + r) * D + c : 0;
                cp16(kb + r * LD + c, k + src, valid);
                if (step >= nk) cp16(kb + (BK + r) * LD + c, v + src, valid);
            }
        }
        asm volatile("cp.async.commit_group;" ::: "memory");
    };
    u32 qf[2][D / 16][2];                      // queries q0 + 8 * n + g
    for (int i = 0; i < D / 4; ++i) {          // n, d and which half of the 16 channels
        const int n = i & 1, d = i >> 2, h = i >> 1 & 1, row = q0 + n * 8 + g;
        qf[n][d][h] = row < S ? *reinterpret_cast<const u32*>(q + size_t(row) * D + d * 16 + h * 8 + t * 2) : 0u;
    }
    Stat stat[2][2];                           // queries q0 + 8 * n + 2 * t + e
    float lse[2][2], ot[D / 16][2][4] = {};
    bring(0);
    for (int step = 0; step < 2 * nk; ++step) {
        bring(step + 1);
        asm volatile("cp.async.wait_group 1;" ::: "memory");
        __syncthreads();
        if (step == nk) {                      // the eight lanes of a query have seen different keys
            for (int n = 0; n < 2; ++n)
                for (int e = 0; e < 2; ++e) {
                    Stat& mine = stat[n][e];
                    for (int o = 4; o < 32; o <<= 1) {
                        Stat theirs;
                        theirs.peak = __shfl_xor_sync(0xffffffff, mine.peak, o);
                        theirs.sum = __shfl_xor_sync(0xffffffff, mine.sum, o);
                        mine.take(theirs, f);
                    }
                    lse[n][e] = f * mine.peak + log2f(mine.sum);
                }
        }
        const __half *kb = smem + (step & 1) * 2 * BK * LD, *vb = kb + BK * LD;
        for (int b = 0; b < BK; b += 16) {
            float st[2][4] = {};
            u32 a[4];
            for (int d = 0; d < D / 16; ++d) {
                LDSM4(a, kb + (b + (lane & 15)) * LD + d * 16 + (lane >> 4) * 8, "");
                for (int n = 0; n < 2; ++n) mma16816(st[n], a, qf[n][d]);
            }
            const int key = step % nk * BK + b + g;           // of elements 0 and 1; elements 2 and 3 are 8 further down
            for (int n = 0; n < 2; ++n)
                for (int e = 0; e < 4; ++e) {
                    const int kk = key + (e >> 1) * 8, qq = q0 + n * 8 + t * 2 + (e & 1);
                    if (kk >= S || (CAUSAL && kk > qq)) st[n][e] = -INFINITY;
                }
            if (step < nk) {
                for (int n = 0; n < 2; ++n)
                    for (int e = 0; e < 4; ++e) stat[n][e & 1].take({st[n][e], 1.f}, f);
                continue;
            }
            u32 pt[2][2];
            for (int n = 0; n < 2; ++n)
                for (int h = 0; h < 2; ++h)
                    pt[n][h] = pack_transposed(exp2f(f * st[n][2 * h] - lse[n][0]), exp2f(f * st[n][2 * h + 1] - lse[n][1]));
            for (int d = 0; d < D / 16; ++d) {
                LDSM4(a, vb + (b + (lane & 7) + (lane >> 4) * 8) * LD + d * 16 + (lane >> 3 & 1) * 8, ".trans");
                for (int n = 0; n < 2; ++n) mma16816(ot[d][n], a, pt[n]);
            }
        }
        __syncthreads();                       // the next step but one overwrites this buffer
    }
    for (int n = 0; n < 2; ++n)
        for (int d = 0; d < D / 16; ++d)
            for (int h = 0; h < 2; ++h) {
                const u32 two = pack_transposed(ot[d][n][2 * h], ot[d][n][2 * h + 1]);
                const int row = q0 + n * 8 + g;
                if (row < S) *reinterpret_cast<u32*>(out + size_t(row) * D + d * 16 + h * 8 + t * 2) = two;
            }
}

template <int D, bool CAUSAL>
__global__ void __launch_bounds__(32 * NWARPS)
two_sweeps(const __half* q, const __half* k, const __half* v, __half* out, int S, int qtiles, float scale) {
    extern __shared__ __align__(16) __half smem[];
    const size_t at = size_t(blockIdx.y) * S * D;
    const float f = scale * 1.44269504f;       // 2^(f x) is e^(scale x)
    const int front = blockIdx.x, back = qtiles - 1 - front;
    query_tile<D, CAUSAL>(q + at, k + at, v + at, out + at, S, front, f, smem);
    if (back > front) query_tile<D, CAUSAL>(q + at, k + at, v + at, out + at, S, back, f, smem);
}
