/* evoengine
name: layernorm_three_launches
precision: fp32
summary: means, inverse deviations and normalisation as three launches with statistics in scratch
tunables:
  THREADS: [128, 256, 512]
scratch:
  mean: {dtype: float32, shape: [N, 2]}
  rstd: {dtype: float32, shape: [N]}
launches:
  - kernel: row_means
    grid: [N]
    block: [THREADS]
    shared: 4 * THREADS
    args: [x, mean, C]
  - kernel: row_rstds
    grid: [N]
    block: [THREADS]
    shared: 8 * THREADS
    args: [x, mean, rstd, C, eps]
  - kernel: normalise
    grid: ["ceil_div(N * C, THREADS)"]
    block: [THREADS]
    args: [x, mean, rstd, weight, bias, out, N, C]
*/
extern __shared__ float partial[];

// Halves the number of live threads until thread 0 holds the sum of values[0 .. THREADS).
__device__ void tree_sum(float* values) {
    for (int stride = THREADS / 2; stride >= 1; stride /= 2) {
        __syncthreads();
        if (threadIdx.x < stride) values[threadIdx.x] += values[threadIdx.x + stride];
    }
    __syncthreads();
}

__global__ void row_means(const float* x, float* mean, int C) {
    const float* row = x + (long long)blockIdx.x * C;
    float sum = 0.0f;
    for (int i = threadIdx.x; i < C; i += THREADS) sum += row[i];
    partial[threadIdx.x] = sum;
    tree_sum(partial);
    if (threadIdx.x == 0) mean[2 * blockIdx.x] = partial[0] / C;
}

__global__ void row_rstds(const float* x, float* mean, float* rstd, int C, float eps) {
    const float* row = x + (long long)blockIdx.x * C;
    const float m = mean[2 * blockIdx.x];
    float squares = 0.0f, rest = 0.0f;
    for (int i = threadIdx.x; i < C; i += THREADS) {
        float d = row[i] - m;
        squares += d * d;
        rest += d;
    }
    partial[threadIdx.x] = squares;
    partial[THREADS + threadIdx.x] = rest;
    tree_sum(partial);
    tree_sum(partial + THREADS);
    if (threadIdx.x == 0) {
        float low = partial[THREADS] / C;   // what the mean lost when it was rounded
        mean[2 * blockIdx.x + 1] = low;
        rstd[blockIdx.x] = rsqrtf(fmaxf(partial[0] / C - low * low, 0.0f) + eps);
    }
}

__global__ void normalise(const float* x, const float* mean, const float* rstd, const float* weight, const float* bias,
                          float* out, int N, int C) {
    long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= (long long)N * C) return;
    int row = i / C, column = i % C;
    out[i] = ((x[i] - mean[2 * row]) - mean[2 * row + 1]) * rstd[row] * weight[column] + bias[column];
}
