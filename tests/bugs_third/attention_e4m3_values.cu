/* evoengine
name: attention_e4m3_values
precision: fp8
summary: as attention_key_stripes, with rows of values scaled by powers of two and rounded to e4m3
launches:
  - kernel: attention<D, causal>
    grid: ["ceil_div(S, 4)", "B*H"]
    block: [128]
    args: [q, k, v, out, S, scale]
*/
#include <cuda_fp16.h>
#include <cuda_fp8.h>

constexpr int ROWS = 4, WARPS = 4;

__device__ float minus_infinity() { return __int_as_float(0xff800000); }

__device__ float warp_max(float x) {
    for (int step = 16; step > 0; step /= 2) x = fmaxf(x, __shfl_xor_sync(~0u, x, step));
    return x;
}

__device__ float warp_sum(float x) {
    for (int step = 1; step < 32; step *= 2) x += __shfl_xor_sync(~0u, x, step);
    return x;
}

template <int D, bool CAUSAL>
__global__ void attention(const half* q, const half* k, const half* v, half* out, int S, float scale) {
    constexpr int PER_LANE = D / 32;
    __shared__ float queries[ROWS][D];
    __shared__ float tops[WARPS][ROWS], totals[WARPS][ROWS];
    __shared__ float partial[WARPS][ROWS][D];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int first = blockIdx.x * ROWS;
    const size_t base = size_t(blockIdx.y) * S * D;
    for (int i = threadIdx.x; i < ROWS * D; i += 128) {
        const int r = i / D, c = i % D;
        queries[r][c] = first + r < S ? __half2float(q[base + size_t(first + r) * D + c]) * scale : 0.0f;
    }
    __syncthreads();

    float top[ROWS], total[ROWS], sum[ROWS][PER_LANE];
    for (int r = 0; r < ROWS; ++r) {
        top[r] = minus_infinity();
        total[r] = 0.0f;
        for (int c = 0; c < PER_LANE; ++c) sum[r][c] = 0.0f;
    }
    const int end = CAUSAL ? min(S, first + ROWS) : S;  // no row of the block sees a later key
    for (int start = warp * 32; start < end; start += WARPS * 32) {
        const int key = start + lane;
        const half2* key_row = reinterpret_cast<const half2*>(k + base + size_t(min(key, S - 1)) * D);
        float score[ROWS] = {};
        for (int d = 0; d < D / 2; ++d) {
            const float low = __low2float(key_row[d]), high = __high2float(key_row[d]);
            for (int r = 0; r < ROWS; ++r) score[r] += queries[r][2 * d] * low + queries[r][2 * d + 1] * high;
        }
        float weight[ROWS];
        for (int r = 0; r < ROWS; ++r) {
            const bool seen = key < S && (!CAUSAL || key <= first + r);
            const float own = seen ? score[r] : minus_infinity();
            const float new_top = fmaxf(top[r], warp_max(own));
            const float shrink = expf(top[r] - new_top);
            weight[r] = expf(own - new_top);
            total[r] = total[r] * shrink + warp_sum(weight[r]);
            for (int c = 0; c < PER_LANE; ++c) sum[r][c] *= shrink;
            top[r] = new_top;
        }
        const int count = min(32, end - start);
        for (int j = 0; j < count; ++j) {
            const half* value_row = v + base + size_t(start + j) * D;
            float value[PER_LANE], largest = 0.0f;
            for (int c = 0; c < PER_LANE; ++c) {
                value[c] = __half2float(value_row[c * 32 + lane]);
                largest = fmaxf(largest, fabsf(value[c]));
            }
            largest = warp_max(largest);
            const float unit = largest > 0.0f ? exp2f(ceilf(log2f(largest)) - 8.0f) : 1.0f;  // at most 256 units
            for (int c = 0; c < PER_LANE; ++c) value[c] = float(__nv_fp8_e4m3(value[c] / unit)) * unit;
            for (int r = 0; r < ROWS; ++r) {
                const float w = __shfl_sync(~0u, weight[r], j);
                for (int c = 0; c < PER_LANE; ++c) sum[r][c] += w * value[c];
            }
        }
    }
    for (int r = 0; r < ROWS; ++r) {
        if (lane == 0) {
            tops[warp][r] = top[r];
            totals[warp][r] = total[r];
        }
        for (int c = 0; c < PER_LANE; ++c) partial[warp][r][c * 32 + lane] = sum[r][c];
    }
    __syncthreads();
    for (int i = threadIdx.x; i < ROWS * D; i += 128) {
        const int r = i / D, c = i % D;
        if (first + r >= S) continue;
        float highest = minus_infinity();
        for (int w = 0; w < WARPS; ++w) highest = fmaxf(highest, tops[w][r]);
        float denominator = 0.0f, numerator = 0.0f;
        for (int w = 0; w < WARPS; ++w) {
            const float factor = expf(tops[w][r] - highest);  // 0 for a warp without keys
            denominator += totals[w][r] * factor;
            numerator += partial[w][r][c] * factor;
        }
        out[base + size_t(first + r) * D + c] = __float2half(numerator / denominator);
    }
}
