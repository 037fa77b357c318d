/* evoengine
name: rms_norm_dependent_launches
precision: fp32
summary: two launches with griddepcontrol between them, rows prefetched to L2, unrolling by the size of the case
tunables:
  THREADS: [256, 128]
constants:
  UNROLL: 8 if C >= 4096 else 2
scratch:
  inverse: {dtype: float32, shape: [N]}
launches:
  - kernel: inverses
    grid: [N]
    block: [THREADS]
    args: [x, inverse, C, eps]
  - kernel: scale
    grid: [N]
    block: [THREADS]
    args: [x, weight, inverse, out, C]
*/
__global__ void inverses(const float* __restrict__ x, float* inverse, int C, float eps) {
    __shared__ float warps[THREADS / 32];
    const float* row = x + size_t(blockIdx.x) * C;
    float s = 0.0f;
#pragma unroll UNROLL
    for (int i = threadIdx.x; i < C; i += THREADS) s = fmaf(row[i], row[i], s);
    for (int o = 16; o; o /= 2) s += __shfl_xor_sync(~0u, s, o);
    if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = s;
    __syncthreads();
    if (threadIdx.x == 0) {
        s = 0.0f;
        for (int w = 0; w < THREADS / 32; ++w) s += warps[w];
        inverse[blockIdx.x] = 1.0f / sqrtf(s / C + eps);
    }
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
}

__global__ void scale(const float* __restrict__ x, const float* __restrict__ weight, const float* inverse, float* __restrict__ out, int C) {
    const float* row = x + size_t(blockIdx.x) * C;
    if (threadIdx.x * 32 < C) asm volatile("prefetch.global.L2 [%0];" ::"l"(row + threadIdx.x * 32));   // a line of 128 bytes each
    asm volatile("griddepcontrol.wait;" ::: "memory");   // what the first launch wrote is complete
    const float s = *(const volatile float*)(inverse + blockIdx.x);
#pragma unroll UNROLL
    for (int i = threadIdx.x; i < C; i += THREADS) out[size_t(blockIdx.x) * C + i] = row[i] * s * weight[i];
}
