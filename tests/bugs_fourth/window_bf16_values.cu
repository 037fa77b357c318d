/* evoengine
name: window_bf16_values
precision: bf16
summary: a block has a token, its warps take the heads in turn, weights and values rounded to bfloat16
launches:
  - kernel: attend<D>
    grid: ["B*S"]
    block: [128]
    args: [q, k, v, sink, out, S, KV, G, W, scale]
*/
#include <cuda_bf16.h>

__device__ float rounded(float x) { return __bfloat162float(__float2bfloat16(x)); }

__device__ float warp_sum(float x) {
    for (int step = 16; step > 0; step /= 2) x += __shfl_xor_sync(~0u, x, step);
    return x;
}

template <int D>
__global__ void attend(const float* q, const float* k, const float* v, const float* sink, float* out, int S, int KV,
                       int G, int W, float scale) {
    constexpr int PER_LANE = D / 32;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int token = blockIdx.x, batch = token / S, place = token % S;
    const int heads = KV * G, first = max(0, place - W + 1);
    for (int head = warp; head < heads; head += 4) {
        const int key_head = head / G;
        const size_t own = (size_t(token) * heads + head) * D;
        float query[PER_LANE], sum[PER_LANE] = {};
        for (int c = 0; c < PER_LANE; ++c) query[c] = q[own + c * 32 + lane] * scale;
        float top = sink[head], total = 1.0f;  // the sink weighs 1 and has no value
        for (int key = first; key <= place; ++key) {
            const size_t row = ((size_t(batch) * S + key) * KV + key_head) * D;
            float part = 0.0f;
            for (int c = 0; c < PER_LANE; ++c) part += query[c] * k[row + c * 32 + lane];
            const float score = warp_sum(part);
            const float new_top = fmaxf(top, score);
            const float shrink = expf(top - new_top), weight = rounded(expf(score - new_top));
            total = total * shrink + weight;
            for (int c = 0; c < PER_LANE; ++c) sum[c] = sum[c] * shrink + weight * rounded(v[row + c * 32 + lane]);
            top = new_top;
        }
        for (int c = 0; c < PER_LANE; ++c) out[own + c * 32 + lane] = sum[c] / total;
    }
}
