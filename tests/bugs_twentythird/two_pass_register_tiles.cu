/* evoengine
name: two_pass_register_tiles
precision: fp16
summary: single-precision attention in two passes over the keys, statistics first, with register tiles of 4 x 4
tunables:
  BM: [32, 16]     # query rows of a block, four a thread
  BN: [64]         # keys of a tile, four a thread
let:
  LQ: BM + 4
  LK: BN + 4
launches:
  - kernel: attn2<D, causal>
    grid: ["B*H", "ceil_div(S, BM)"]
    block: [16, "BM / 4"]
    shared: 4 * (D * LQ + max(D * LK, BN * D) + BM * LK)
    args: [q, k, v, out, S, scale]
*/
// The first pass finds the maximum and the sum of weights of every row, so that the second one forms weights which
// are final: no output is ever rescaled. The scores are formed twice, V is read once.
#include <cuda_fp16.h>

#define UNROLL _Pragma("unroll")
constexpr int NT = BM * 4, LQ = BM + 4, LK = BN + 4;

// Maximum and sum of the weights 2^(x - m) of some scores.
struct MS {
    float m, s;
    __device__ __forceinline__ void add(const MS& o) {
        const float t = fmaxf(m, o.m);
        if (t == -INFINITY) return;      // neither has seen a key
        s = s * exp2f(m - t) + o.s * exp2f(o.m - t);
        m = t;
    }
};

__device__ __forceinline__ void unpack8(float (&f)[8], const __half* p) {
    const uint4 w = *reinterpret_cast<const uint4*>(p);
    const __half2* h = reinterpret_cast<const __half2*>(&w);
    UNROLL for (int i = 0; i < 4; ++i) {
        const float2 x = __half22float2(h[i]);
        f[2 * i] = x.x, f[2 * i + 1] = x.y;
    }
}

// Rows r0.. of a head as columns of dst [D][LD]; zeros from row S on.
template <int D, int N, int LD>
__device__ __forceinline__ void load_t(float* dst, const __half* g, int r0, int S, int tid, float mul) {
    for (int i = tid; i < N * (D / 8); i += NT) {
        const int r = i % N, c = i / N * 8;      // neighbours write neighbouring banks
        float f[8] = {};
        if (r0 + r < S) unpack8(f, g + size_t(r0 + r) * D + c);
        UNROLL for (int j = 0; j < 8; ++j) dst[(c + j) * LD + r] = f[j] * mul;
    }
}

// 4 x 4 scores of a thread: the outer products of four queries and four keys, one dimension after the other.
template <int D>
__device__ __forceinline__ void dots(float (&s)[4][4], const float* qt, const float* kt, int tx, int ty) {
    UNROLL for (int i = 0; i < 16; ++i) s[i / 4][i % 4] = 0.0f;
    UNROLL for (int d = 0; d < D; ++d) {
        const float4 a = *reinterpret_cast<const float4*>(qt + d * LQ + ty * 4);
        const float4 b = *reinterpret_cast<const float4*>(kt + d * LK + tx * 4);
        const float x[4] = {a.x, a.y, a.z, a.w}, y[4] = {b.x, b.y, b.z, b.w};
        UNROLL for (int i = 0; i < 16; ++i) s[i / 4][i % 4] = fmaf(x[i / 4], y[i % 4], s[i / 4][i % 4]);
    }
}

template <int D, bool CAUSAL>
__global__ void __launch_bounds__(NT)
attn2(const __half* __restrict__ q, const __half* __restrict__ k, const __half* __restrict__ v,
      __half* __restrict__ out, int S, float scale) {
    constexpr int CT = D / 16;      // output columns of a thread: pairs tx, tx + 16, ...
    extern __shared__ __align__(16) float sm[];
    float* qt = sm;                                           // [D][LQ]
    float* kv = qt + D * LQ;                                  // K [D][LK], later V [BN][D]
    float* pw = kv + (D * LK > BN * D ? D * LK : BN * D);     // [BM][LK]

    const int tx = threadIdx.x, ty = threadIdx.y, tid = ty * 16 + tx;
    const int r0 = blockIdx.y * BM;
    const size_t hd = size_t(blockIdx.x) * S * D;
    const int kend = CAUSAL ? min(S, r0 + BM) : S;
    float s[4][4];

    load_t<D, BM, LQ>(qt, q + hd, r0, S, tid, scale * 1.4426950408889634f);

    MS st[4];
    UNROLL for (int i = 0; i < 4; ++i) st[i] = {-INFINITY, 0.0f};
    for (int k0 = 0; k0 < kend; k0 += BN) {
        load_t<D, BN, LK>(kv, k + hd, k0, S, tid, 1.0f);
        __syncthreads();
        dots<D>(s, qt, kv, tx, ty);
        __syncthreads();
        UNROLL for (int i = 0; i < 4; ++i) {
            const int seen = (CAUSAL ? min(S, r0 + ty * 4 + i + 1) : S) - k0 - tx * 4;      // of my four keys
            UNROLL for (int j = 0; j < 4; ++j)
                if (j < seen) st[i].add({s[i][j], 1.0f});
        }
    }
    // The sixteen threads of a row are half a warp.
    UNROLL for (int i = 0; i < 4; ++i) {
        UNROLL for (int o = 8; o > 0; o /= 2)
            st[i].add({__shfl_xor_sync(~0u, st[i].m, o), __shfl_xor_sync(~0u, st[i].s, o)});
        st[i].s = 1.0f / st[i].s;
    }

    float acc[4][CT] = {};
    for (int k0 = 0; k0 < kend; k0 += BN) {
        load_t<D, BN, LK>(kv, k + hd, k0, S, tid, 1.0f);
        __syncthreads();
        dots<D>(s, qt, kv, tx, ty);
        UNROLL for (int i = 0; i < 4; ++i) {
            const int seen = (CAUSAL ? min(S, r0 + ty * 4 + i + 1) : S) - k0 - tx * 4;
            float w[4];
            UNROLL for (int j = 0; j < 4; ++j) w[j] = j < seen ? exp2f(s[i][j] - st[i].m) * st[i].s : 0.0f;
            *reinterpret_cast<float4*>(pw + (ty * 4 + i) * LK + tx * 4) = make_float4(w[0], w[1], w[2], w[3]);
        }
        __syncthreads();      // K has been used: V takes its place
        for (int i = tid; i < BN * (D / 8); i += NT) {
            const int r = i / (D / 8), c = i % (D / 8) * 8;
            float f[8] = {};
            if (k0 + r < S) unpack8(f, v + hd + size_t(k0 + r) * D + c);
            UNROLL for (int j = 0; j < 8; j += 4)
                *reinterpret_cast<float4*>(kv + r * D + c + j) = make_float4(f[j], f[j + 1], f[j + 2], f[j + 3]);
        }
        __syncthreads();
        const int nk = min(BN, kend - k0);
        for (int n = 0; n < nk; ++n) {
            float w[4];
            UNROLL for (int i = 0; i < 4; ++i) w[i] = pw[(ty * 4 + i) * LK + n];
            UNROLL for (int c = 0; c < CT; c += 2) {
                const float2 x = *reinterpret_cast<const float2*>(kv + n * D + c * 16 + tx * 2);
                UNROLL for (int i = 0; i < 4; ++i) acc[i][c] += w[i] * x.x, acc[i][c + 1] += w[i] * x.y;
            }
        }
        __syncthreads();
    }

    UNROLL for (int i = 0; i < 4; ++i) {
        const int row = r0 + ty * 4 + i;
        if (row >= S) break;
        UNROLL for (int c = 0; c < CT; c += 2)
            *reinterpret_cast<__half2*>(out + hd + size_t(row) * D + c * 16 + tx * 2) = __floats2half2_rn(acc[i][c], acc[i][c + 1]);
    }
}
