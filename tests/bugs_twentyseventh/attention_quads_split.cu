/* evoengine
name: attention_quads_split
precision: fp16
summary: four lanes share a query row in single precision; the keys are split between blocks and merged by a second launch
tunables:
  ROWS: [32, 64]                # query rows of a block
  TILE: [32, 16]                # keys in shared memory
  PARTS: [4, 2, 3]              # blocks that share out the keys
  MERGE_WARPS: [4, 8]
let:
  SPAN: round_up(ceil_div(S, PARTS), TILE)
scratch:
  part_out: {dtype: float32, shape: [PARTS, "B*H", S, D]}
  part_lse: {dtype: float32, shape: ["B*H", S, PARTS]}
launches:
  - kernel: partial_attention<D, causal>
    grid: ["ceil_div(S, ROWS)", PARTS, "B*H"]
    block: ["4*ROWS"]
    shared: 4*TILE*D
    args: [q, k, v, part_out, part_lse, S, SPAN, scale]
  - kernel: merge_parts<D>
    grid: ["ceil_div(B*H*S, MERGE_WARPS)"]
    block: [32, MERGE_WARPS]
    args: [part_out, part_lse, out, B*H*S]
*/
// A part writes its own normalised result and the logarithm (base two) of its sum of weights, from
// which the second launch finds what each part contributes.
#include <cuda_fp16.h>
constexpr int GROUP = 8;    // keys between two looks at the running maximum
struct Eight {
    float x[8];
    __device__ explicit Eight(const uint4& raw) {
        const __half2* h = reinterpret_cast<const __half2*>(&raw);
#pragma unroll
        for (int i = 0; i < 4; ++i) x[2 * i] = __low2float(h[i]), x[2 * i + 1] = __high2float(h[i]);
    }
};

template <int D, bool CAUSAL>
__global__ void __launch_bounds__(4 * ROWS)
partial_attention(const __half* __restrict__ q, const __half* __restrict__ k, const __half* __restrict__ v,
                  float* __restrict__ part_out, float* __restrict__ part_lse, int S, int span, float scale) {
    constexpr int NT = 4 * ROWS, CH = D / 8, MINE = CH / 4;   // threads; 16-byte chunks of a row, and of a lane
    constexpr int FETCH = (TILE * CH + NT - 1) / NT;    // chunks that a thread brings of each tile
    extern __shared__ uint4 smem[];
    uint4 *k_tile = smem, *v_tile = smem + TILE * CH;

    const int tid = threadIdx.x, quad_lane = tid & 3, part = blockIdx.y, bh = blockIdx.z;
    const int first_row = blockIdx.x * ROWS, row = first_row + (tid >> 2);
    const uint4* q_head = reinterpret_cast<const uint4*>(q) + (size_t)bh * S * CH;
    const uint4* k_head = reinterpret_cast<const uint4*>(k) + (size_t)bh * S * CH;
    const uint4* v_head = reinterpret_cast<const uint4*>(v) + (size_t)bh * S * CH;

    // Chunks of a row go round the quad, so that its four lanes read 64 bytes in a row.
    float qr[MINE][8], acc[MINE][8] = {};
    const float qs = scale * 1.4426950408889634f;
    for (int j = 0; j < MINE; ++j) {
        const Eight e(q_head[(size_t)min(row, S - 1) * CH + j * 4 + quad_lane]);
        for (int i = 0; i < 8; ++i) qr[j][i] = e.x[i] * qs;
    }

    const int lo = part * span;
    const int hi = min(CAUSAL ? min(S, first_row + ROWS) : S, lo + span);   // the block's keys: [lo, hi)
    const int visible = CAUSAL ? min(hi, row + 1) : hi;                     // this row's end of them
    float m = -INFINITY, l = 0.0f;
    uint4 next_k[FETCH], next_v[FETCH];
    auto fetch = [&](int t0) {
#pragma unroll
        for (int f = 0; f < FETCH; ++f) {
            const int c = tid + f * NT, key = t0 + c / CH;
            const bool there = c < TILE * CH && key < hi;
            const size_t at = (size_t)key * CH + c % CH;
            next_k[f] = there ? k_head[at] : make_uint4(0, 0, 0, 0);
            next_v[f] = there ? v_head[at] : make_uint4(0, 0, 0, 0);
        }
    };
    if (lo < hi) fetch(lo);
    for (int t0 = lo; t0 < hi; t0 += TILE) {
        __syncthreads();                                // the last tile is used up
#pragma unroll
        for (int f = 0; f < FETCH; ++f) {
            const int c = tid + f * NT;
            if (c < TILE * CH) k_tile[c] = next_k[f], v_tile[c] = next_v[f];
        }
        __syncthreads();
        if (t0 + TILE < hi) fetch(t0 + TILE);           // on its way while this tile is computed
        for (int g = 0; g < TILE && t0 + g < hi; g += GROUP) {
            float s[GROUP], m_new = m;
#pragma unroll
            for (int u = 0; u < GROUP; ++u) {
                float dot = 0.0f;
                for (int j = 0; j < MINE; ++j) {
                    const Eight e(k_tile[(g + u) * CH + j * 4 + quad_lane]);
                    for (int i = 0; i < 8; ++i) dot = fmaf(qr[j][i], e.x[i], dot);
                }
                dot += __shfl_xor_sync(0xffffffffu, dot, 1, 4);
                dot += __shfl_xor_sync(0xffffffffu, dot, 2, 4);
                s[u] = t0 + g + u < visible ? dot : -INFINITY;
                m_new = fmaxf(m_new, s[u]);
            }
            const float base = m_new == -INFINITY ? 0.0f : m_new;   // nothing seen yet: all weights are 0
            const float shrink = exp2f(m - base);
            m = m_new, l *= shrink;
            for (int j = 0; j < MINE; ++j)
                for (int i = 0; i < 8; ++i) acc[j][i] *= shrink;
#pragma unroll
            for (int u = 0; u < GROUP; ++u) {
                const float w = exp2f(s[u] - base);
                l += w;
                for (int j = 0; j < MINE; ++j) {
                    const Eight e(v_tile[(g + u) * CH + j * 4 + quad_lane]);
                    for (int i = 0; i < 8; ++i) acc[j][i] = fmaf(w, e.x[i], acc[j][i]);
                }
            }
        }
    }
    if (row >= S) return;
    const size_t out_row = (size_t)bh * S + row;
    if (quad_lane == 0) part_lse[out_row * PARTS + part] = l > 0.0f ? m + log2f(l) : -INFINITY;
    const float inv = l > 0.0f ? 1.0f / l : 0.0f;
    float4* to = reinterpret_cast<float4*>(part_out + ((size_t)part * gridDim.z * S + out_row) * D);
    for (int j = 0; j < MINE; ++j)
        for (int i = 0; i < 2; ++i)
            to[(j * 4 + quad_lane) * 2 + i] = make_float4(acc[j][4 * i] * inv, acc[j][4 * i + 1] * inv,
                                                          acc[j][4 * i + 2] * inv, acc[j][4 * i + 3] * inv);
}

// One warp a row; a lane holds D / 32 neighbouring channels.
template <int D>
__global__ void __launch_bounds__(32 * MERGE_WARPS)
merge_parts(const float* __restrict__ part_out, const float* __restrict__ part_lse, __half* __restrict__ out, int rows) {
    const int row = blockIdx.x * MERGE_WARPS + threadIdx.y, lane = threadIdx.x;
    if (row >= rows) return;
    const float lse = lane < PARTS ? part_lse[(size_t)row * PARTS + lane] : -INFINITY;
    float peak = lse;
    for (int o = 16; o > 0; o >>= 1) peak = fmaxf(peak, __shfl_xor_sync(0xffffffffu, peak, o));
    const float share = exp2f(lse - peak);
    float denom = share;
    for (int o = 16; o > 0; o >>= 1) denom += __shfl_xor_sync(0xffffffffu, denom, o);

    constexpr int PER = D / 32;
    float sum[PER] = {};
    for (int p = 0; p < PARTS; ++p) {
        const float w = __shfl_sync(0xffffffffu, share, p) / denom;
        const float2* from = reinterpret_cast<const float2*>(part_out + ((size_t)p * rows + row) * D + lane * PER);
        for (int c = 0; c < PER / 2; ++c) sum[2 * c] += w * from[c].x, sum[2 * c + 1] += w * from[c].y;
    }
    __half2* to = reinterpret_cast<__half2*>(out + (size_t)row * D + lane * PER);
    for (int c = 0; c < PER / 2; ++c) to[c] = __floats2half2_rn(sum[2 * c], sum[2 * c + 1]);
}
