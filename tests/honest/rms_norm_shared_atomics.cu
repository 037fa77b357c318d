/* evoengine
name: rms_norm_shared_atomics
precision: fp32
summary: rows in chunks over the grid; block sums meet in global float atomics, after a helper launch zeroed them
tunables:
  CHUNK: [1024, 256]
scratch:
  squares: {dtype: float32, shape: [N]}
launches:
  - kernel: clear
    grid: ["ceil_div(N, 128)"]
    block: [128]
    args: [squares, N]
  - kernel: add_squares
    grid: [N, "ceil_div(C, CHUNK)"]
    block: [128]
    args: [x, squares, C]
  - kernel: scale
    grid: [N, "ceil_div(C, CHUNK)"]
    block: [128]
    args: [x, weight, squares, out, C, eps]
*/
__global__ void clear(float* squares, int N) {
    if (blockIdx.x * 128 + threadIdx.x < N) squares[blockIdx.x * 128 + threadIdx.x] = 0.0f;
}

__global__ void add_squares(const float* x, float* squares, int C) {
    __shared__ float block_sum;
    if (threadIdx.x == 0) block_sum = 0.0f;
    __syncthreads();
    float mine = 0.0f;
    for (int i = threadIdx.x; i < CHUNK; i += 128) {
        const int c = blockIdx.y * CHUNK + i;
        if (c < C) mine += x[(size_t)blockIdx.x * C + c] * x[(size_t)blockIdx.x * C + c];
    }
    atomicAdd(&block_sum, mine);
    __syncthreads();
    if (threadIdx.x == 0) atomicAdd(squares + blockIdx.x, block_sum);
}

__global__ void scale(const float* x, const float* weight, const float* squares, float* out, int C, float eps) {
    const float s = 1.0f / sqrtf(squares[blockIdx.x] / C + eps);
    for (int i = threadIdx.x; i < CHUNK; i += 128) {
        const int c = blockIdx.y * CHUNK + i;
        if (c < C) out[(size_t)blockIdx.x * C + c] = x[(size_t)blockIdx.x * C + c] * s * weight[c];
    }
}
