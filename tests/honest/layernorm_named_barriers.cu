/* evoengine
name: layernorm_named_barriers
precision: fp32
summary: groups of four warps work on a row each and meet at a barrier of their own
tunables:
  GROUPS: [2, 4, 1]
launches:
  - kernel: layernorm
    grid: ["ceil_div(N, GROUPS)"]
    block: ["128 * GROUPS"]
    args: [x, weight, bias, out, N, C, eps]
*/
__device__ __forceinline__ void group_barrier(int group) {
    asm volatile("bar.sync %0, 128;" ::"r"(group + 1) : "memory");
}

__device__ __forceinline__ float group_sum(float v, float* of_warp, int group) {
#pragma unroll
    for (int o = 16; o > 0; o >>= 1) v += __shfl_xor_sync(0xffffffffu, v, o);
    group_barrier(group);
    if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32 % 4] = v;
    group_barrier(group);
    return (of_warp[0] + of_warp[1]) + (of_warp[2] + of_warp[3]);
}

__global__ void __launch_bounds__(128 * GROUPS)
layernorm(const float* __restrict__ x, const float* __restrict__ weight, const float* __restrict__ bias,
          float* __restrict__ out, int N, int C, float eps) {
    __shared__ float of_warp[GROUPS][4];
    const int group = threadIdx.x / 128, t = threadIdx.x % 128, row = blockIdx.x * GROUPS + group;
    if (row >= N) return;   // a whole group, and no other waits for it
    const float* in = x + size_t(row) * C;
    float s = 0.0f;
    for (int i = t; i < C; i += 128) s += in[i];
    const float mean = group_sum(s, of_warp[group], group) / C;
    float a = 0.0f, b = 0.0f;
    for (int i = t; i < C; i += 128) a += in[i] - mean, b += (in[i] - mean) * (in[i] - mean);
    const float rest = group_sum(a, of_warp[group], group) / C;
    const float inverse = rsqrtf(fmaxf(group_sum(b, of_warp[group], group) / C - rest * rest, 0.0f) + eps);
    for (int i = t; i < C; i += 128) out[size_t(row) * C + i] = (in[i] - mean - rest) * inverse * weight[i] + bias[i];
}
