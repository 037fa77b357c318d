/* evoengine
name: softmax_two_readings
precision: fp32
summary: a block a row; the first reading finds the maximum and the sum as it goes, the second reads the row again and writes
launches:
  - kernel: softmax
    grid: [N]
    block: [256]
    args: [x, out, C]
*/
__device__ __forceinline__ void merge(float& top, float& sum, float other_top, float other_sum) {
    const float most = fmaxf(top, other_top);
    sum = sum * __expf(top - most) + other_sum * __expf(other_top - most);
    top = most;
}

__global__ void __launch_bounds__(256) softmax(const float* __restrict__ x, float* __restrict__ out, int C) {
    __shared__ float tops[8], sums[8];
    const float* row = x + size_t(blockIdx.x) * C;
    float top = -1e30f, sum = 0.0f;
    for (int i = threadIdx.x; i < C; i += 256) {
        const float v = row[i];
        if (v > top) sum *= __expf(top - v), top = v;
        sum += __expf(v - top);
    }
#pragma unroll
    for (int step = 16; step; step /= 2) {
        const float other_top = __shfl_xor_sync(~0u, top, step), other_sum = __shfl_xor_sync(~0u, sum, step);
        merge(top, sum, other_top, other_sum);
    }
    if (threadIdx.x % 32 == 0) tops[threadIdx.x / 32] = top, sums[threadIdx.x / 32] = sum;
    __syncthreads();
    top = tops[0], sum = sums[0];
#pragma unroll
    for (int w = 1; w < 8; ++w) merge(top, sum, tops[w], sums[w]);
    const float inverse = 1.0f / sum;
    for (int i = threadIdx.x; i < C; i += 256) out[size_t(blockIdx.x) * C + i] = __expf(row[i] - top) * inverse;
}
