/* evoengine
name: edges_half_weights
precision: fp16
summary: a thread has a node and a head; it walks over the edges three times, and scores and exponentials are rounded to half precision
launches:
  - kernel: weigh_edges
    grid: ["ceil_div(NODES*H, 64)"]
    block: [64]
    args: [left, right, source, offsets, weights, NODES, H, slope]
*/
#include <cuda_fp16.h>

__global__ void __launch_bounds__(64)
weigh_edges(const float* __restrict__ left, const float* __restrict__ right, const int* __restrict__ source,
            const int* __restrict__ offsets, float* __restrict__ weights, int nodes, int heads, float slope) {
    const int place = blockIdx.x * 64 + threadIdx.x, node = place / heads, head = place % heads;
    if (node >= nodes) return;
    const int begin = offsets[node], end = offsets[node + 1];
    const float own = right[place];

    float top = -INFINITY, sum = 0.0f;
    for (int i = begin; i < end; ++i) {
        const float score = left[source[i] * heads + head] + own;
        top = fmaxf(top, score > 0.0f ? score : slope * score);
    }
    for (int i = begin; i < end; ++i) {
        const float score = left[source[i] * heads + head] + own;
        const __half below = __float2half((score > 0.0f ? score : slope * score) - top);
        const __half weight = __float2half(expf(__half2float(below)));
        sum += __half2float(weight);
        weights[size_t(i) * heads + head] = __half2float(weight);
    }
    for (int i = begin; i < end; ++i) weights[size_t(i) * heads + head] /= sum;
}
