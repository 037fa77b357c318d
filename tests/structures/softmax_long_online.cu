/* evoengine
name: softmax_long_online
precision: fp32
summary: a block a long row; maximum and sum in one pass, each sum corrected when its maximum grows, and a second pass that writes
launches:
  - kernel: softmax
    grid: [N]
    block: [512]
    args: [x, out, C]
*/
__device__ __forceinline__ void join(float& top, float& sum, float other_top, float other_sum) {
    const float larger = fmaxf(top, other_top);
    sum = sum * __expf(top - larger) + other_sum * __expf(other_top - larger);
    top = larger;
}

__global__ void __launch_bounds__(512) softmax(const float* __restrict__ x, float* __restrict__ out, int C) {
    __shared__ float tops[16], sums[16];
    const int t = threadIdx.x;
    const float4* from = reinterpret_cast<const float4*>(x + size_t(blockIdx.x) * C);
    float4* to = reinterpret_cast<float4*>(out + size_t(blockIdx.x) * C);
    float top = -1e30f, sum = 0.0f;
    for (int at = t; at < C / 4; at += 512) {
        const float4 v = from[at];
        const float larger = fmaxf(top, fmaxf(fmaxf(v.x, v.y), fmaxf(v.z, v.w)));
        sum *= __expf(top - larger);
        sum += __expf(v.x - larger) + __expf(v.y - larger) + __expf(v.z - larger) + __expf(v.w - larger);
        top = larger;
    }
#pragma unroll
    for (int step = 16; step; step /= 2) {
        const float other_top = __shfl_xor_sync(~0u, top, step), other_sum = __shfl_xor_sync(~0u, sum, step);
        join(top, sum, other_top, other_sum);
    }
    if (t % 32 == 0) tops[t / 32] = top, sums[t / 32] = sum;
    __syncthreads();
    top = tops[0], sum = sums[0];
    for (int i = 1; i < 16; ++i) join(top, sum, tops[i], sums[i]);
    const float factor = 1.0f / sum;
    for (int at = t; at < C / 4; at += 512) {
        const float4 v = from[at];
        to[at] = make_float4(__expf(v.x - top) * factor, __expf(v.y - top) * factor, __expf(v.z - top) * factor, __expf(v.w - top) * factor);
    }
}
