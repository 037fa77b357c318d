/* evoengine
name: rms_norm_waits_for_grid
precision: fp32
summary: two launches, the second of which waits with cudaGridDependencySynchronize, as code for nvcc does
scratch:
  squares: {dtype: float32, shape: [N]}
launches:
  - {kernel: sum_rows, grid: [N], block: [WARP_SIZE], args: [x, squares, C]}
  - {kernel: scale_rows, grid: ["ceil_div(C, 256)", N], block: [256], args: [x, weight, squares, out, C, eps]}
*/
__device__ __forceinline__ void wait_for_earlier_launch() {
#if __CUDA_ARCH__ >= 900
    cudaGridDependencySynchronize();
#endif
}

__device__ __forceinline__ void allow_next_launch() {
#if __CUDA_ARCH__ >= 900
    cudaTriggerProgrammaticLaunchCompletion();
#endif
}

__global__ void sum_rows(const float* x, float* squares, int C) {
    float sum = 0.0f;
    for (int i = threadIdx.x; i < C; i += 32) {
        const float value = x[size_t(blockIdx.x) * C + i];
        sum = fmaf(value, value, sum);
    }
    for (int step = 1; step < 32; step *= 2) sum += __shfl_xor_sync(0xffffffff, sum, step);
    if (threadIdx.x == 0) squares[blockIdx.x] = sum;
    __threadfence();
    allow_next_launch();
}

__global__ void scale_rows(const float* x, const float* weight, const float* squares, float* out, int C, float eps) {
    const int column = blockIdx.x * 256 + threadIdx.x;
    const size_t at = size_t(blockIdx.y) * C + column;
    const float value = column < C ? x[at] * weight[column] : 0.0f;
    wait_for_earlier_launch();
    if (column < C) out[at] = value * rsqrtf(squares[blockIdx.y] / C + eps);
}
