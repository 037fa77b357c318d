/* evoengine
name: attention_split_then_merge
precision: fp16
summary: register tiles of 2x4 scores in single precision, the keys split among blocks, a second launch merges the partial results
tunables:
  SPLITS: [3, 2, 4, 1]      # blocks that share out the keys of a row
  BN: [32, 64]              # keys of a tile
let:
  CHUNK: round_up(ceil_div(S, SPLITS), BN)
  SHARED: 4 * (D * (32 + 2) + D * (BN + 4) + 32 * (BN + 1)) + 2 * BN * D
  ROWS: B * H * S
require: [SHARED <= MAX_SHARED_BYTES]
scratch:
  acc: {dtype: float32, shape: ["B*H*S", SPLITS, D]}
  stat: {dtype: float32, shape: ["B*H*S", SPLITS, 2]}
launches:
  - kernel: split<D, causal>
    grid: ["ceil_div(S, 32)", SPLITS, "B*H"]
    block: [128]
    shared: SHARED
    args: [q, k, v, acc, stat, S, CHUNK, scale]
  - kernel: merge<D>
    grid: ["ceil_div(ROWS, 4)"]
    block: [128]
    args: [acc, stat, out, ROWS]
*/
#include <cuda_fp16.h>

#define FULL 0xffffffffu
constexpr int BM = 32, NT = 128, KT = BN / 8;      // KT: scores of a thread in a row
// Pitches of the transposed tiles: queries are read as float2, keys as float4.
constexpr int QP = BM + 2, KP = BN + 4, PP = BN + 1;

// The lanes of a row are eight neighbours of a warp.
__device__ __forceinline__ float max8(float x) {
    for (int o = 4; o > 0; o >>= 1) x = fmaxf(x, __shfl_xor_sync(FULL, x, o));
    return x;
}
__device__ __forceinline__ float sum8(float x) {
    for (int o = 4; o > 0; o >>= 1) x += __shfl_xor_sync(FULL, x, o);
    return x;
}

// dst[c][r] = f * src[r0 + r][c]; rows from `end` on become zeros.
template <int D, int N, int P>
__device__ void load_t(float* dst, const __half* src, int r0, int end, float f) {
    for (int i = threadIdx.x; i < N * D / 2; i += NT) {
        const int r = i / (D / 2), c = i % (D / 2) * 2;
        const __half2* from = reinterpret_cast<const __half2*>(src + size_t(r0 + r) * D + c);
        const float2 x = r0 + r < end ? __half22float2(*from) : make_float2(0.0f, 0.0f);
        dst[c * P + r] = x.x * f, dst[(c + 1) * P + r] = x.y * f;
    }
}

template <int D, bool CAUSAL>
__global__ void __launch_bounds__(NT)
split(const __half* __restrict__ q, const __half* __restrict__ k, const __half* __restrict__ v, float* __restrict__ acc,
      float* __restrict__ stat, int S, int chunk, float scale) {
    extern __shared__ __align__(16) float sm[];
    float *kt = sm, *qt = kt + D * KP, *ps = qt + D * QP;
    __half* vs = reinterpret_cast<__half*>(ps + BM * PP);
    const int tx = threadIdx.x & 7, ty = threadIdx.x >> 3, r0 = blockIdx.x * BM;
    const int lo = blockIdx.y * chunk, hi = min(CAUSAL ? min(S, r0 + BM) : S, lo + chunk);
    const size_t bh = blockIdx.z, off = bh * S * D;

    load_t<D, BM, QP>(qt, q + off, r0, S, scale * 1.44269504f);     // exponentials have base two
    float m[2] = {-INFINITY, -INFINITY}, l[2] = {0.0f, 0.0f}, o[2][D / 8] = {};
    for (int n0 = lo; n0 < hi; n0 += BN) {
        __syncthreads();                           // the tile before has been read by all
        load_t<D, BN, KP>(kt, k + off, n0, hi, 1.0f);
        for (int i = threadIdx.x; i < BN * D / 8; i += NT) {
            const int r = i / (D / 8);
            const uint4* from = reinterpret_cast<const uint4*>(v + off + size_t(n0) * D);
            reinterpret_cast<uint4*>(vs)[i] = n0 + r < hi ? from[i] : make_uint4(0, 0, 0, 0);
        }
        __syncthreads();
        float s[2][KT] = {};
#pragma unroll 8
        for (int d = 0; d < D; ++d) {
            const float2 a = *reinterpret_cast<const float2*>(&qt[d * QP + ty * 2]);
            for (int j = 0; j < KT; j += 4) {
                const float4 b = *reinterpret_cast<const float4*>(&kt[d * KP + tx * KT + j]);
                s[0][j] += a.x * b.x, s[0][j + 1] += a.x * b.y, s[0][j + 2] += a.x * b.z, s[0][j + 3] += a.x * b.w;
                s[1][j] += a.y * b.x, s[1][j + 1] += a.y * b.y, s[1][j + 2] += a.y * b.z, s[1][j + 3] += a.y * b.w;
            }
        }
        for (int i = 0; i < 2; ++i) {
            const int rl = ty * 2 + i;
            float mx = m[i];
            for (int j = 0; j < KT; ++j) {
                const int key = n0 + tx * KT + j;
                if (key >= hi || (CAUSAL && key > r0 + rl)) s[i][j] = -INFINITY;
                mx = fmaxf(mx, s[i][j]);
            }
            mx = max8(mx);
            const float ref = mx == -INFINITY ? 0.0f : mx;     // a row may see no key of this chunk
            const float c = exp2f(m[i] - ref);
            float sum = 0.0f;
            for (int j = 0; j < KT; ++j) {
                const float p = exp2f(s[i][j] - ref);
                ps[rl * PP + tx * KT + j] = p;
                sum += p;
            }
            l[i] = l[i] * c + sum8(sum);
            m[i] = mx;
            for (int j = 0; j < D / 8; ++j) o[i][j] *= c;
        }
        __syncwarp();                              // the rows of a warp are written and read by that warp alone
#pragma unroll 4
        for (int n = 0; n < BN; ++n) {
            const float p0 = ps[ty * 2 * PP + n], p1 = ps[(ty * 2 + 1) * PP + n];
            for (int j = 0; j < D / 8; j += 2) {   // pairs of columns 2 * tx + 16 * (j / 2)
                const float2 x = __half22float2(*reinterpret_cast<const __half2*>(&vs[n * D + j * 8 + tx * 2]));
                o[0][j] += p0 * x.x, o[0][j + 1] += p0 * x.y;
                o[1][j] += p1 * x.x, o[1][j + 1] += p1 * x.y;
            }
        }
    }
    for (int i = 0; i < 2; ++i) {
        const int row = r0 + ty * 2 + i;
        if (row >= S) break;
        const size_t at = (bh * S + row) * SPLITS + blockIdx.y;
        for (int j = 0; j < D / 8; j += 2)
            *reinterpret_cast<float2*>(&acc[at * D + j * 8 + tx * 2]) = make_float2(o[i][j], o[i][j + 1]);
        if (tx == 0) stat[at * 2] = m[i], stat[at * 2 + 1] = l[i];
    }
}

// One warp a row: lane s weighs split s, then every lane sums pairs of columns.
template <int D>
__global__ void __launch_bounds__(NT) merge(const float* __restrict__ acc, const float* __restrict__ stat, __half* __restrict__ out, int rows) {
    const int lane = threadIdx.x & 31, row = blockIdx.x * (NT / 32) + (threadIdx.x >> 5);
    if (row >= rows) return;
    float2 ml = make_float2(-INFINITY, 0.0f);
    if (lane < SPLITS) ml = reinterpret_cast<const float2*>(stat)[size_t(row) * SPLITS + lane];
    float top = ml.x;
    for (int o = 16; o > 0; o >>= 1) top = fmaxf(top, __shfl_xor_sync(FULL, top, o));
    const float w = exp2f(ml.x - top);             // 0 for a split without a key
    float tot = w * ml.y;
    for (int o = 16; o > 0; o >>= 1) tot += __shfl_xor_sync(FULL, tot, o);
    for (int c = lane * 2; c < D; c += 64) {
        float2 sum = make_float2(0.0f, 0.0f);
        for (int s = 0; s < SPLITS; ++s) {
            const float ws = __shfl_sync(FULL, w, s);
            const float2 x = *reinterpret_cast<const float2*>(&acc[(size_t(row) * SPLITS + s) * D + c]);
            sum.x += ws * x.x, sum.y += ws * x.y;
        }
        *reinterpret_cast<__half2*>(&out[size_t(row) * D + c]) = __floats2half2_rn(sum.x / tot, sum.y / tot);
    }
}
