/* evoengine
name: rms_norm_grid_stride
precision: fp32
summary: two launches of grid-stride loops - a warp a row writes 1/rms to scratch, then all elements are scaled
tunables:
  THREADS: [256, 128]
scratch:
  inverse: {dtype: float32, shape: [N]}
launches:
  - kernel: row_inverses
    grid: ["min(SM_COUNT * 4, ceil_div(N * WARP_SIZE, THREADS))"]
    block: [THREADS]
    args: [x, inverse, N, C, eps]
  - kernel: scale
    grid: ["min(SM_COUNT * 8, ceil_div(N * C, THREADS))"]
    block: [THREADS]
    args: [x, weight, inverse, out, N, C]
*/
__global__ void row_inverses(const float* __restrict__ x, float* __restrict__ inverse, int N, int C, float eps) {
    const int warps = gridDim.x * blockDim.x / 32, lane = threadIdx.x & 31;
    for (int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32; row < N; row += warps) {
        float s = 0.0f;
        for (int i = lane; i < C; i += 32) s += __ldg(&x[(long long)row * C + i]) * __ldg(&x[(long long)row * C + i]);
        for (int o = 16; o >= 1; o >>= 1) s += __shfl_down_sync(0xffffffffu, s, o);
        if (lane == 0) inverse[row] = rsqrtf(s / C + eps);
    }
}

__global__ void scale(const float* __restrict__ x, const float* __restrict__ weight, const float* __restrict__ inverse,
                      float* __restrict__ out, int N, int C) {
    const long long count = (long long)N * C, step = (long long)gridDim.x * blockDim.x;
    for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += step)
        out[i] = x[i] * inverse[i / C] * weight[i % C];
}
