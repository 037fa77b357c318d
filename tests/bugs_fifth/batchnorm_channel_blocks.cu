/* evoengine
name: batchnorm_channel_blocks
precision: fp32
summary: a block has a channel and reads it three times, for mean, variance and results; one thread updates the running statistics
tunables:
  THREADS: [256, 128]
launches:
  - kernel: batch_norm
    grid: [C]
    block: [THREADS]
    args: [x, weight, bias, running_mean, running_var, out, N, C, L, momentum, eps]
*/
constexpr int WARPS = THREADS / 32;

__device__ __forceinline__ float block_sum(float value, float* parts) {
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    for (int step = 16; step > 0; step /= 2) value += __shfl_xor_sync(~0u, value, step);
    if (lane == 0) parts[warp] = value;
    __syncthreads();
    value = parts[lane % WARPS];
    for (int step = WARPS / 2; step > 0; step /= 2) value += __shfl_xor_sync(~0u, value, step);
    return value;
}

__global__ void __launch_bounds__(THREADS)
batch_norm(const float* __restrict__ x, const float* __restrict__ weight, const float* __restrict__ bias,
           float* __restrict__ running_mean, float* __restrict__ running_var, float* __restrict__ out, int N, int C, int L,
           float momentum, float eps) {
    __shared__ float sums[WARPS], squares[WARPS];
    const int channel = blockIdx.x, count = N * L;
    auto place = [&](int i) { return (size_t(i / L) * C + channel) * L + i % L; };

    float sum = 0.0f;
    for (int i = threadIdx.x; i < count; i += THREADS) sum += x[place(i)];
    const float mean = block_sum(sum, sums) / count;
    float square = 0.0f;
    for (int i = threadIdx.x; i < count; i += THREADS) {
        const float distance = x[place(i)] - mean;
        square = fmaf(distance, distance, square);
    }
    const float deviation = block_sum(square, squares);
    const float inverse = 1.0f / sqrtf(deviation / count + eps);
    const float scale = weight[channel] * inverse, shift = bias[channel];
    for (int i = threadIdx.x; i < count; i += THREADS) {
        const size_t at = place(i);
        out[at] = fmaf(x[at] - mean, scale, shift);
    }
    if (threadIdx.x == 0) {
        running_mean[channel] = (1.0f - momentum) * running_mean[channel] + momentum * mean;
        running_var[channel] = (1.0f - momentum) * running_var[channel] + momentum * (deviation / (count - 1));
    }
}
