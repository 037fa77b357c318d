/* evoengine
name: attention_resident_warps
precision: fp16
summary: resident blocks take eight queries at a time; their four warps share out the keys, a lane a key, and are merged
let:
  TILES: ceil_div(S, 8)
launches:
  - kernel: attend<D, causal>
    grid: ["min(B*H*TILES, 40)"]
    block: [128]
    args: [q, k, v, out, B*H, S, TILES, scale]
*/
#include <cuda_fp16.h>

constexpr int ROWS = 8, WARPS = 4;
constexpr unsigned ALL = 0xffffffffu;

template <int D, bool CAUSAL>
__global__ void __launch_bounds__(WARPS * 32)
attend(const half* __restrict__ q, const half* __restrict__ k, const half* __restrict__ v, half* __restrict__ out,
       int heads, int S, int tiles, float scale) {
    constexpr int PAIRS = D / 64;   // columns of a lane, two by two
    __shared__ __align__(16) float queries[ROWS][D];
    __shared__ float parts[WARPS][ROWS][D];
    __shared__ float peaks[WARPS][ROWS], totals[WARPS][ROWS];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;

    for (int item = blockIdx.x; item < heads * tiles; item += gridDim.x) {
        const int tile = item % tiles, first = tile * ROWS;
        const size_t head = size_t(item / tiles) * S * D;
        for (int i = threadIdx.x; i < ROWS * D; i += WARPS * 32) {
            const int r = i / D, c = i % D;
            queries[r][c] = first + r < S ? __half2float(q[head + size_t(first + r) * D + c]) * scale : 0.0f;
        }
        __syncthreads();

        float peak[ROWS], total[ROWS] = {};
        float2 sum[ROWS][PAIRS];
        for (int r = 0; r < ROWS; ++r) {
            peak[r] = -INFINITY;
            for (int p = 0; p < PAIRS; ++p) sum[r][p] = make_float2(0.0f, 0.0f);
        }
        const int end = CAUSAL ? min(S, first + ROWS) : S;
        for (int from = warp * 32; from < end; from += WARPS * 32) {
            const int key = from + lane;
            float score[ROWS] = {};
            if (key < end) {
                const uint4* source = reinterpret_cast<const uint4*>(k + head + size_t(key) * D);
                for (int c = 0; c < D / 8; ++c) {
                    const uint4 raw = source[c];
                    const half2* pairs = reinterpret_cast<const half2*>(&raw);
                    for (int p = 0; p < 4; ++p) {
                        const float2 pair = __half22float2(pairs[p]);
                        for (int r = 0; r < ROWS; ++r)
                            score[r] += queries[r][c * 8 + p * 2] * pair.x + queries[r][c * 8 + p * 2 + 1] * pair.y;
                    }
                }
            }
            float weight[ROWS];
            for (int r = 0; r < ROWS; ++r) {
                const bool seen = key < end && (!CAUSAL || key <= first + r);
                float high = seen ? score[r] : -INFINITY;
                for (int step = 16; step > 0; step /= 2) high = fmaxf(high, __shfl_xor_sync(ALL, high, step));
                high = fmaxf(high, peak[r]);
                const float base = high == -INFINITY ? 0.0f : high;   // no key of this warp is seen yet
                const float earlier = __expf(peak[r] - base);
                weight[r] = seen ? __expf(score[r] - base) : 0.0f;
                total[r] = total[r] * earlier + weight[r];   // of this lane's keys
                peak[r] = high;
                for (int p = 0; p < PAIRS; ++p) sum[r][p].x *= earlier, sum[r][p].y *= earlier;
            }
            const int count = min(32, end - from);
            for (int j = 0; j < count; ++j) {
                const half2* value = reinterpret_cast<const half2*>(v + head + size_t(from + j) * D);
                float2 pair[PAIRS];
                for (int p = 0; p < PAIRS; ++p) pair[p] = __half22float2(value[p * 32 + lane]);
                for (int r = 0; r < ROWS; ++r) {
                    const float w = __shfl_sync(ALL, weight[r], j);
                    for (int p = 0; p < PAIRS; ++p) {
                        sum[r][p].x += w * pair[p].x;
                        sum[r][p].y += w * pair[p].y;
                    }
                }
            }
        }

        for (int r = 0; r < ROWS; ++r) {
            for (int p = 0; p < PAIRS; ++p) {
                parts[warp][r][p * 64 + lane * 2] = sum[r][p].x;
                parts[warp][r][p * 64 + lane * 2 + 1] = sum[r][p].y;
            }
            float all = total[r];
            for (int step = 16; step > 0; step /= 2) all += __shfl_xor_sync(ALL, all, step);
            if (lane == 0) {
                peaks[warp][r] = peak[r];
                totals[warp][r] = all;
            }
        }
        __syncthreads();

        for (int i = threadIdx.x; i < ROWS * D; i += WARPS * 32) {
            const int r = i / D, c = i % D;
            if (first + r >= S) continue;
            float highest = peaks[0][r];
            for (int w = 1; w < WARPS; ++w) highest = fmaxf(highest, peaks[w][r]);
            float numerator = 0.0f, denominator = 0.0f;
            for (int w = 0; w < WARPS; ++w) {
                const float share = __expf(peaks[w][r] - highest);
                numerator += parts[w][r][c] * share;
                denominator += totals[w][r] * share;
            }
            out[head + size_t(first + r) * D + c] = __float2half(numerator / denominator);
        }
        __syncthreads();   // before the next item's queries and parts
    }
}
