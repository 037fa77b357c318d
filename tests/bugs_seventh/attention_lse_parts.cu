/* evoengine
name: attention_lse_parts
precision: fp16
summary: a warp has a query and one of SPLITS parts of the keys, a lane a key for the scores and columns for the values; a second launch joins the parts
tunables:
  SPLITS: [3, 2, 4]
let:
  CHUNK: ceil_div(S, SPLITS)
scratch:
  parts: {dtype: float32, shape: [SPLITS, B * H, S, D]}
  tops: {dtype: float32, shape: [SPLITS, B * H, S]}
  totals: {dtype: float32, shape: [SPLITS, B * H, S]}
launches:
  - kernel: attend<D, causal>
    grid: ["ceil_div(S, 4)", "B * H", SPLITS]
    block: [128]
    args: [q, k, v, parts, tops, totals, S, CHUNK, scale]
  - kernel: join<D>
    grid: ["ceil_div(S, 4)", "B * H"]
    block: [128]
    args: [parts, tops, totals, out, S]
*/
#include <cuda_fp16.h>

constexpr float LOG2_E = 1.4426950408889634f, LOWEST = -1e30f;

template <int D, bool CAUSAL>
__global__ void __launch_bounds__(128)
attend(const half* __restrict__ q, const half* __restrict__ k, const half* __restrict__ v, float* parts, float* tops,
       float* totals, int S, int chunk, float scale) {
    constexpr int OWN = D / 32;
    __shared__ float query[4][D];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int row = blockIdx.x * 4 + warp;
    const size_t head = size_t(blockIdx.y) * S * D;
    if (row < S)
        for (int d = lane; d < D; d += 32) query[warp][d] = __half2float(q[head + size_t(row) * D + d]) * scale * LOG2_E;
    __syncwarp();
    if (row >= S) return;

    const int begin = blockIdx.z * chunk;
    const int end = min(begin + chunk, CAUSAL ? row + 1 : S);
    float sum[OWN] = {}, top = LOWEST, total = 0.0f;
    for (int start = begin; start < end; start += 32) {
        const int key = start + lane;
        float score = LOWEST;
        if (key < end) {
            score = 0.0f;
            const uint4* from = reinterpret_cast<const uint4*>(k + head + size_t(key) * D);
            for (int i = 0; i < D / 8; ++i) {
                const uint4 eight = from[i];
                const half2* pairs = reinterpret_cast<const half2*>(&eight);
                for (int p = 0; p < 4; ++p) {
                    const float2 pair = __half22float2(pairs[p]);
                    score = fmaf(query[warp][i * 8 + p * 2], pair.x, score);
                    score = fmaf(query[warp][i * 8 + p * 2 + 1], pair.y, score);
                }
            }
        }
        float high = fmaxf(top, score);
        for (int step = 16; step > 0; step /= 2) high = fmaxf(high, __shfl_xor_sync(~0u, high, step));
        const float shrink = exp2f(top - high), weight = key < end ? exp2f(score - high) : 0.0f;
        top = high;
        total = total * shrink + weight;
        for (int c = 0; c < OWN; ++c) sum[c] *= shrink;
        const int count = min(32, end - start);
        for (int j = 0; j < count; ++j) {
            const float other = __shfl_sync(~0u, weight, j);
            const half* from = v + head + size_t(start + j) * D;
            for (int c = 0; c < OWN; ++c) sum[c] = fmaf(other, __half2float(from[c * 32 + lane]), sum[c]);
        }
    }
    for (int step = 16; step > 0; step /= 2) total += __shfl_xor_sync(~0u, total, step);

    const size_t at = (size_t(blockIdx.z) * gridDim.y + blockIdx.y) * S + row;
    for (int c = 0; c < OWN; ++c) parts[at * D + c * 32 + lane] = sum[c];
    if (lane == 0) tops[at] = top, totals[at] = total;
}

template <int D>
__global__ void __launch_bounds__(128)
join(const float* parts, const float* tops, const float* totals, half* out, int S) {
    const int lane = threadIdx.x % 32, row = blockIdx.x * 4 + threadIdx.x / 32;
    if (row >= S) return;
    const size_t heads = gridDim.y, place = size_t(blockIdx.y) * S + row;
    float top = LOWEST;
    for (int split = 0; split < SPLITS; ++split) top = fmaxf(top, tops[split * heads * S + place]);
    float total = 0.0f, sum[D / 32] = {};
    for (int split = 0; split < SPLITS; ++split) {
        const size_t at = split * heads * S + place;
        const float factor = exp2f(tops[at] - top);
        total += factor * totals[at];
        for (int c = 0; c < D / 32; ++c) {
            const float part = parts[at * D + c * 32 + lane];
            sum[c] += factor * part;
        }
    }
    for (int c = 0; c < D / 32; ++c) out[place * D + c * 32 + lane] = __float2half(sum[c] / total);
}
