/* evoengine
name: attention_split_keys
precision: fp16
summary: the keys are split between blocks; four lanes share a query row and keep its online softmax, a second launch merges the splits
tunables:
  SPLITS: [2, 3, 4]
let:
  SPAN: round_up(ceil_div(S, SPLITS), 32)   # keys of a split
scratch:
  partial: {dtype: float32, shape: [B, H, S, SPLITS, D]}
  peaks: {dtype: float32, shape: [B, H, S, SPLITS]}
  totals: {dtype: float32, shape: [B, H, S, SPLITS]}
launches:
  - kernel: attend<D, causal>
    grid: ["ceil_div(S, 32)", SPLITS, "B*H"]
    block: [128]
    args: [q, k, v, partial, peaks, totals, S, SPAN, scale]
  - kernel: merge<D>
    grid: ["ceil_div(B*H*S, 4)"]
    block: [32, 4]
    args: [partial, peaks, totals, out, B*H*S]
*/
#include <cuda_fp16.h>

constexpr int ROWS = 32, KEYS = 32, STEP = 8;   // queries of a block, keys of a tile, keys at once

template <int D, bool CAUSAL>
__global__ void __launch_bounds__(128)
attend(const __half* __restrict__ q, const __half* __restrict__ k, const __half* __restrict__ v,
       float* __restrict__ partial, float* __restrict__ peaks, float* __restrict__ totals, int S,
       int span, float scale) {
    constexpr int PAIRS = D / 8;   // pairs of columns of a lane: 2 * part + 8 * i
    __shared__ __align__(16) __half ks[KEYS][D + 8];
    __shared__ __align__(16) __half vs[KEYS][D + 8];

    const int part = threadIdx.x % 4;
    const int row = blockIdx.x * ROWS + threadIdx.x / 4;
    const size_t head = static_cast<size_t>(blockIdx.z) * S * D;
    const int first = blockIdx.y * span;
    int last = min(first + span, S);
    if (CAUSAL) last = min(last, static_cast<int>(blockIdx.x + 1) * ROWS);

    float2 query[PAIRS], sum[PAIRS];
#pragma unroll
    for (int i = 0; i < PAIRS; ++i) {
        query[i] = make_float2(0.0f, 0.0f);
        if (row < S)
            query[i] = __half22float2(*reinterpret_cast<const __half2*>(
                q + head + static_cast<size_t>(row) * D + i * 8 + part * 2));
        query[i].x *= scale;
        query[i].y *= scale;
        sum[i] = make_float2(0.0f, 0.0f);
    }
    float peak = -INFINITY, total = 0.0f;

    for (int start = first; start < last; start += KEYS) {
        __syncthreads();   // the tile before has been used
        for (int i = threadIdx.x; i < KEYS * D / 8; i += 128) {
            const int r = i / (D / 8), c = i % (D / 8) * 8;
            uint4 key = make_uint4(0, 0, 0, 0), value = key;
            if (start + r < last) {
                const size_t from = head + static_cast<size_t>(start + r) * D + c;
                key = *reinterpret_cast<const uint4*>(k + from);
                value = *reinterpret_cast<const uint4*>(v + from);
            }
            *reinterpret_cast<uint4*>(&ks[r][c]) = key;
            *reinterpret_cast<uint4*>(&vs[r][c]) = value;
        }
        __syncthreads();   // the tile is there

        for (int n = 0; n < KEYS; n += STEP) {
            float score[STEP];
            float high = peak;
#pragma unroll
            for (int j = 0; j < STEP; ++j) {
                float dot = 0.0f;
#pragma unroll
                for (int i = 0; i < PAIRS; ++i) {
                    const float2 x = __half22float2(
                        *reinterpret_cast<const __half2*>(&ks[n + j][i * 8 + part * 2]));
                    dot += query[i].x * x.x + query[i].y * x.y;
                }
                dot += __shfl_xor_sync(0xffffffffu, dot, 1);
                dot += __shfl_xor_sync(0xffffffffu, dot, 2);
                const int key = start + n + j;
                const bool seen = key < last && (!CAUSAL || key <= row);
                score[j] = seen ? dot : -INFINITY;
                high = fmaxf(high, score[j]);
            }
            if (high == -INFINITY) continue;   // nothing seen so far
            const float fade = expf(peak - high);
            total *= fade;
#pragma unroll
            for (int i = 0; i < PAIRS; ++i) {
                sum[i].x *= fade;
                sum[i].y *= fade;
            }
#pragma unroll
            for (int j = 0; j < STEP; ++j) {
                const float weight = expf(score[j] - high);
                total += weight;
#pragma unroll
                for (int i = 0; i < PAIRS; ++i) {
                    const float2 x = __half22float2(
                        *reinterpret_cast<const __half2*>(&vs[n + j][i * 8 + part * 2]));
                    sum[i].x += weight * x.x;
                    sum[i].y += weight * x.y;
                }
            }
            peak = high;
        }
    }

    if (row < S) {
        const size_t slot = (static_cast<size_t>(blockIdx.z) * S + row) * gridDim.y + blockIdx.y;
#pragma unroll
        for (int i = 0; i < PAIRS; ++i)
            *reinterpret_cast<float2*>(partial + slot * D + i * 8 + part * 2) = sum[i];
        if (part == 0) {
            peaks[slot] = peak;
            totals[slot] = total;
        }
    }
}

// One warp a row: a split counts by how far its peak lies below the highest.
template <int D>
__global__ void __launch_bounds__(128)
merge(const float* __restrict__ partial, const float* __restrict__ peaks,
      const float* __restrict__ totals, __half* __restrict__ out, int rows) {
    const int row = blockIdx.x * 4 + threadIdx.y;
    if (row >= rows) return;
    const size_t slot = static_cast<size_t>(row) * SPLITS;
    float top = -INFINITY;
#pragma unroll
    for (int s = 0; s < SPLITS; ++s) top = fmaxf(top, peaks[slot + s]);
    float factor[SPLITS], whole = 0.0f;
#pragma unroll
    for (int s = 0; s < SPLITS; ++s) {
        factor[s] = expf(peaks[slot + s] - top);
        whole += factor[s] * totals[slot + s];
    }
    const float inverse = 1.0f / whole;
    for (int c = threadIdx.x; c < D; c += 32) {
        float value = 0.0f;
#pragma unroll
        for (int s = 0; s < SPLITS; ++s) value += factor[s] * partial[(slot + s) * D + c];
        out[static_cast<size_t>(row) * D + c] = __float2half(value * inverse);
    }
}
