/* evoengine
name: layernorm_atomic_sums
precision: fp32
summary: sums through float atomics in an order that changes from run to run; four launches, the first zeroes the sums
tunables:
  TILE: [1024, 512]
  THREADS: [256, 128]
scratch:
  sums: {dtype: float32, shape: [N, 3]}
launches:
  - kernel: zero
    grid: ["ceil_div(3 * N, 256)"]
    block: [256]
    args: [sums, N]
  - kernel: add_values
    grid: ["ceil_div(C, TILE)", N]
    block: [THREADS]
    args: [x, sums, C]
  - kernel: add_deviations
    grid: ["ceil_div(C, TILE)", N]
    block: [THREADS]
    args: [x, sums, C]
  - kernel: normalise
    grid: ["ceil_div(C, TILE)", N]
    block: [THREADS]
    args: [x, sums, weight, bias, out, C, eps]
*/
__global__ void zero(float* sums, int N) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < 3 * N) sums[i] = 0.0f;
}

__device__ void add_to(float* target, float v) {
    for (int o = 16; o; o >>= 1) v += __shfl_down_sync(0xffffffffu, v, o);
    if (threadIdx.x % 32 == 0) atomicAdd(target, v);
}

__global__ void add_values(const float* __restrict__ x, float* sums, int C) {
    const float* row = x + size_t(blockIdx.y) * C;
    const int end = min(C, int(blockIdx.x + 1) * TILE);
    float v = 0.0f;
    for (int i = blockIdx.x * TILE + threadIdx.x; i < end; i += THREADS) v += row[i];
    add_to(&sums[3 * blockIdx.y], v);
}

__global__ void add_deviations(const float* __restrict__ x, float* sums, int C) {
    const float* row = x + size_t(blockIdx.y) * C;
    const int end = min(C, int(blockIdx.x + 1) * TILE);
    const float mean = sums[3 * blockIdx.y] / C;
    float first = 0.0f, second = 0.0f;
    for (int i = blockIdx.x * TILE + threadIdx.x; i < end; i += THREADS) {
        const float d = row[i] - mean;
        first += d, second += d * d;
    }
    add_to(&sums[3 * blockIdx.y + 1], first);
    add_to(&sums[3 * blockIdx.y + 2], second);
}

__global__ void normalise(const float* __restrict__ x, const float* __restrict__ sums, const float* __restrict__ weight,
                          const float* __restrict__ bias, float* __restrict__ out, int C, float eps) {
    const size_t row = blockIdx.y;
    const int end = min(C, int(blockIdx.x + 1) * TILE);
    const float mean = sums[3 * row] / C, rest = sums[3 * row + 1] / C;
    const float rstd = rsqrtf(fmaxf(sums[3 * row + 2] / C - rest * rest, 0.0f) + eps);
    for (int i = blockIdx.x * TILE + threadIdx.x; i < end; i += THREADS)
        out[row * C + i] = (x[row * C + i] - mean - rest) * rstd * weight[i] + bias[i];
}
