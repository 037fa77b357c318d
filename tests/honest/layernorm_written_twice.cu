/* evoengine
name: layernorm_written_twice
precision: fp32
summary: the output first holds the centred row, is read back for the variance and written again
tunables:
  THREADS: [256, 1024]
launches:
  - kernel: centre
    grid: [N]
    block: [THREADS]
    args: [x, out, C]
  - kernel: scale
    grid: [N]
    block: [THREADS]
    args: [weight, bias, out, C, eps]
*/
__device__ float total(float v) {
    __shared__ float part[THREADS];
    part[threadIdx.x] = v;
    __syncthreads();
    for (int n = THREADS / 2; n; n /= 2) {
        if (threadIdx.x < n) part[threadIdx.x] += part[threadIdx.x + n];
        __syncthreads();
    }
    v = part[0];
    __syncthreads();
    return v;
}

__global__ void centre(const float* x, float* out, int C) {
    x += size_t(blockIdx.x) * C;
    out += size_t(blockIdx.x) * C;
    float sum = 0.f;
    for (int i = threadIdx.x; i < C; i += THREADS) sum += x[i];
    const float mean = total(sum) / C;
    for (int i = threadIdx.x; i < C; i += THREADS) out[i] = x[i] - mean;
}

__global__ void scale(const float* weight, const float* bias, float* out, int C, float eps) {
    out += size_t(blockIdx.x) * C;
    float a = 0.f, b = 0.f;
    for (int i = threadIdx.x; i < C; i += THREADS) a += out[i], b += out[i] * out[i];
    const float rest = total(a) / C;
    const float rstd = 1.f / sqrtf(fmaxf(total(b) / C - rest * rest, 0.f) + eps);
    for (int i = threadIdx.x; i < C; i += THREADS) out[i] = (out[i] - rest) * rstd * weight[i] + bias[i];
}
