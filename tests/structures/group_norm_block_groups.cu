/* evoengine
name: group_norm_block_groups
precision: fp32
summary: a block a group; sums by vectors, variance around the mean in a second pass and the outputs in a third, from the cache
launches:
  - kernel: normalise
    grid: [G, B]
    block: [256]
    args: [x, weights, shifts, out, G, P]
*/
__device__ float block_sum(float sum, float* of_warp) {
#pragma unroll
    for (int step = 16; step; step /= 2) sum += __shfl_xor_sync(~0u, sum, step);
    if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = sum;
    __syncthreads();
    sum = 0.0f;
#pragma unroll
    for (int i = 0; i < 8; ++i) sum += of_warp[i];
    return sum;
}

__global__ void __launch_bounds__(256)
normalise(const float* __restrict__ x, const float* __restrict__ weights, const float* __restrict__ shifts, float* __restrict__ out, int G, int P) {
    __shared__ float of_warp[2][8];
    const int group = blockIdx.x, t = threadIdx.x, vectors = 2 * P;
    const size_t first = (size_t(blockIdx.y) * G + group) * 8 * P;
    const float4* from = reinterpret_cast<const float4*>(x + first);
    float4* to = reinterpret_cast<float4*>(out + first);
    float sum = 0.0f;
    for (int at = t; at < vectors; at += 256) {
        const float4 v = from[at];
        sum += v.x + v.y + v.z + v.w;
    }
    const float mean = block_sum(sum, of_warp[0]) / (8 * P);
    sum = 0.0f;
    for (int at = t; at < vectors; at += 256) {
        const float4 v = from[at];
        sum += (v.x - mean) * (v.x - mean) + (v.y - mean) * (v.y - mean) + (v.z - mean) * (v.z - mean) + (v.w - mean) * (v.w - mean);
    }
    const float factor = rsqrtf(block_sum(sum, of_warp[1]) / (8 * P) + 1e-5f);
    for (int at = t; at < vectors; at += 256) {
        const int channel = group * 8 + at / (P / 4);
        const float by = weights[channel] * factor, more = shifts[channel];
        const float4 v = from[at];
        to[at] = make_float4((v.x - mean) * by + more, (v.y - mean) * by + more, (v.z - mean) * by + more, (v.w - mean) * by + more);
    }
}
