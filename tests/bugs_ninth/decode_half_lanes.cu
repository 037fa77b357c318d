/* evoengine
name: decode_half_lanes
precision: fp16
summary: a warp has one query; a lane has every 32nd key, read as halves, and weights are rounded to half before they meet the values
launches:
  - kernel: decode<D>
    grid: [KV * G, B]
    block: [32]
    args: [q, k, v, lengths, out, lse, T, KV, G, scale, cap]
*/
#include <cuda_fp16.h>

__device__ __forceinline__ float rounded(float x) { return __half2float(__float2half(x)); }

template <int D>
__global__ void __launch_bounds__(32)
decode(const float* __restrict__ q, const float* __restrict__ k, const float* __restrict__ v, const int* __restrict__ lengths,
       float* __restrict__ out, float* __restrict__ lse, int T, int KV, int G, float scale, float cap) {
    __shared__ float query[D];
    const int lane = threadIdx.x, head = blockIdx.x, batch = blockIdx.y, length = lengths[batch];
    const size_t row = size_t(batch) * gridDim.x + head;
    const size_t from = (size_t(batch) * T * KV + head / G) * D;
    for (int d = lane; d < D; d += 32) query[d] = rounded(q[row * D + d]);
    __syncwarp();
    // no score is above cap, so the sums need no maximum
    float total = 0.0f, sum[D / 32] = {};
    for (int start = 0; start < length; start += 32) {
        const int key = start + lane;
        float dot = 0.0f;
        if (key < length)
            for (int d = 0; d < D; ++d) dot += query[d] * rounded(k[from + size_t(key) * KV * D + d]);
        const float weight = key < length ? __expf(cap * tanhf(dot * scale / cap) - cap) : 0.0f;
        total += weight;
        for (int j = 0; j < min(32, length - start); ++j) {
            const float one = rounded(__shfl_sync(~0u, weight, j));
            for (int c = 0; c < D / 32; ++c) sum[c] += one * rounded(v[from + size_t(start + j) * KV * D + c * 32 + lane]);
        }
    }
    for (int step = 16; step > 0; step /= 2) total += __shfl_xor_sync(~0u, total, step);
    for (int c = 0; c < D / 32; ++c) out[row * D + c * 32 + lane] = sum[c] / total;
    if (lane == 0) lse[row] = cap + logf(total);
}
