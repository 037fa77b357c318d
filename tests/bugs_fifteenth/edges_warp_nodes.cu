/* evoengine
name: edges_warp_nodes
precision: fp32
summary: a warp has a node, and takes as many of its edges at a time as it has lanes for their heads; one pass keeps maximum and sum, which the lanes of a head merge, a second one writes
launches:
  - kernel: weigh_edges<H>
    grid: ["ceil_div(NODES, 4)"]
    block: [32, 4]
    args: [left, right, source, offsets, weights, NODES, slope]
*/
__device__ __forceinline__ float leaky(float value, float slope) { return value > 0.0f ? value : slope * value; }

template <int H>
__global__ void __launch_bounds__(128)
weigh_edges(const float* __restrict__ left, const float* __restrict__ right, const int* __restrict__ source,
            const int* __restrict__ offsets, float* __restrict__ weights, int nodes, float slope) {
    constexpr int EDGES = 32 / H;   // at a time
    const int lane = threadIdx.x, node = blockIdx.x * 4 + threadIdx.y;
    if (node >= nodes) return;
    const int head = lane % H, begin = offsets[node] + lane / H, end = offsets[node + 1];
    const float own = right[node * H + head];

    float top = -INFINITY, sum = 0.0f;
    for (int i = begin; i < end; i += EDGES) {
        const float score = leaky(left[source[i] * H + head] + own, slope);
        const float high = fmaxf(top, score);
        sum = sum * expf(top - high) + expf(score - high);
        top = high;
    }
#pragma unroll
    for (int mask = H; mask < 32; mask *= 2) {
        const float other_top = __shfl_xor_sync(0xffffffffu, top, mask);
        const float other_sum = __shfl_xor_sync(0xffffffffu, sum, mask);
        const float high = fmaxf(top, other_top);
        if (high > -INFINITY) {   // one of the two has seen an edge
            sum = sum * expf(top - high) + other_sum * expf(other_top - high);
            top = high;
        }
    }
    const float inverse = 1.0f / sum;
    for (int i = begin; i < end; i += EDGES)
        weights[size_t(i) * H + head] = expf(leaky(left[source[i] * H + head] + own, slope) - top) * inverse;
}
