/* evoengine
name: layernorm_flags_between_blocks
precision: fp32
summary: two blocks a row; the first sends the moments of its half through scratch with a volatile flag, the second merges, normalises the row and takes the flag back by a plain store
scratch:
  moments: {dtype: float32, shape: [N, 2]}
  ready: {dtype: int32, shape: [N], init: 0}
launches:
  - kernel: layernorm
    grid: [2 * N]
    block: [128]
    args: [x, weight, bias, out, moments, ready, C, eps]
*/
__device__ float block_sum(float v) {
    __shared__ float sums[4];
    for (int o = 16; o; o /= 2) v += __shfl_xor_sync(~0u, v, o);
    __syncthreads();
    if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = v;
    __syncthreads();
    return sums[0] + sums[1] + sums[2] + sums[3];
}

// A value of the row that is no outlier, the median of three: differences from it have no large common part.
__device__ float origin_of(const float* row, int C) {
    const float a = row[0], b = row[C / 2], c = row[C - 1];
    return fmaxf(fminf(a, b), fminf(fmaxf(a, b), c));
}

__global__ void __launch_bounds__(128)
layernorm(const float* __restrict__ x, const float* __restrict__ weight, const float* __restrict__ bias, float* __restrict__ out,
          float* moments, int* ready, int C, float eps) {
    const int r = blockIdx.x / 2, half = blockIdx.x % 2, middle = C / 2;
    const int begin = half ? middle : 0, end = half ? C : middle, count = end - begin;
    const float* row = x + size_t(r) * C;
    const float origin = origin_of(row, C);
    float sum = 0.0f, squares = 0.0f;
    for (int i = begin + threadIdx.x; i < end; i += 128) sum += row[i] - origin;
    const float mean = count ? block_sum(sum) / count : 0.0f;
    for (int i = begin + threadIdx.x; i < end; i += 128) squares += ((row[i] - origin) - mean) * ((row[i] - origin) - mean);
    const float m2 = block_sum(squares);
    volatile int* flag = ready + r;
    if (half == 0) {
        if (threadIdx.x == 0) {
            moments[2 * r] = mean;
            moments[2 * r + 1] = m2;
            __threadfence();
            *flag = 1;
        }
        return;
    }
    // blocks begin in the order of their numbers, so the one that this one waits for has begun
    if (threadIdx.x == 0) {
        while (*flag == 0) __nanosleep(32);
        __threadfence();
        ready[r] = 0;
    }
    __syncthreads();
    const float other_mean = moments[2 * r], other_m2 = moments[2 * r + 1], apart = mean - other_mean;
    const float whole_mean = other_mean + apart * count / C;
    const float whole_m2 = m2 + other_m2 + apart * apart * middle * count / C;
    const float scale = rsqrtf(whole_m2 / C + eps);
    for (int i = threadIdx.x; i < C; i += 128) out[size_t(r) * C + i] = ((row[i] - origin) - whole_mean) * scale * weight[i] + bias[i];
}
