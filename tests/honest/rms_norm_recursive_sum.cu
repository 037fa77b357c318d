/* evoengine
name: rms_norm_recursive_sum
precision: fp32
summary: each thread adds up its piece of the row by recursion
launches:
  - kernel: rms_norm
    grid: [N]
    block: [128]
    args: [x, weight, out, C, eps]
*/
__device__ __noinline__ float sum_of_squares(const float* values, int count) {
    if (count <= 4) {
        float s = 0.0f;
        for (int i = 0; i < count; i++) s += values[i] * values[i];
        return s;
    }
    return sum_of_squares(values, count / 2) + sum_of_squares(values + count / 2, count - count / 2);
}

__global__ void rms_norm(const float* x, const float* weight, float* out, int C, float eps) {
    __shared__ float sums[128];
    const float* row = x + (size_t)blockIdx.x * C;
    const int piece = (C + 127) / 128, begin = min(C, (int)threadIdx.x * piece), end = min(C, begin + piece);
    sums[threadIdx.x] = sum_of_squares(row + begin, end - begin);
    __syncthreads();
    float s = 0.0f;
    for (int i = 0; i < 128; i++) s += sums[i];
    const float scale = 1.0f / sqrtf(s / C + eps);
    for (int i = threadIdx.x; i < C; i += 128) out[(size_t)blockIdx.x * C + i] = row[i] * scale * weight[i];
}
