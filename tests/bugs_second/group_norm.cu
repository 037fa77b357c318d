/* evoengine
name: group_norm
precision: fp32
summary: a block normalises one group of one sample, in two passes for mean and variance
tunables:
  THREADS: [128]
launches:
  - kernel: group_norm
    grid: [G, N]
    block: [THREADS]
    args: [x, weight, bias, out, C, C//G, P, eps]
*/
__device__ float block_sum(float x) {
    __shared__ float partial[THREADS];
    __syncthreads();  // the previous total has been read by all
    partial[threadIdx.x] = x;
    for (int step = THREADS / 2; step > 0; step /= 2) {
        __syncthreads();
        if (threadIdx.x < step) partial[threadIdx.x] += partial[threadIdx.x + step];
    }
    __syncthreads();
    return partial[0];
}

__global__ void group_norm(const float* x, const float* weight, const float* bias, float* out,
                           int C, int channels, int P, float eps) {
    const int first = blockIdx.x * channels;  // channel
    const int count = channels * P;
    const size_t base = (size_t(blockIdx.y) * C + first) * P;

    float sum = 0.0f;
    for (int i = threadIdx.x; i < count; i += THREADS) sum += x[base + i];
    const float mean = block_sum(sum) / count;

    float deviations = 0.0f, squares = 0.0f;
    for (int i = threadIdx.x; i < count; i += THREADS) {
        const float d = x[base + i] - mean;
        deviations += d;
        squares += d * d;
    }
    const float error = block_sum(deviations) / count;  // of the rounded mean
    const float variance = fmaxf(block_sum(squares) / count - error * error, 0.0f);
    const float scale = 1.0f / sqrtf(variance + eps);

    for (int i = threadIdx.x; i < count; i += THREADS) {
        const int channel = first + i / P;
        out[base + i] = ((x[base + i] - mean) - error) * scale * weight[channel] + bias[channel];
    }
}
