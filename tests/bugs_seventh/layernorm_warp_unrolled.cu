/* evoengine
name: layernorm_warp_unrolled
precision: fp32
summary: a warp has a row and passes three times over it, four values of a lane in flight at a time
launches:
  - kernel: layernorm
    grid: ["ceil_div(N, 4)"]
    block: [128]
    args: [x, weight, bias, out, N, C, eps]
*/
__device__ __forceinline__ float warp_sum(float value) {
    for (int step = 16; step > 0; step /= 2) value += __shfl_xor_sync(~0u, value, step);
    return value;
}

// The sum of what `term` says of every column of the row, in every lane of the warp.
template <typename Term> __device__ __forceinline__ float sum_of(Term term, int C) {
    const int lane = threadIdx.x % 32;
    float sums[4] = {};
    int i = lane;
    for (; i + 96 < C; i += 128)
        for (int u = 0; u < 4; ++u) sums[u] += term(i + u * 32);
    for (; i < C; i += 32) sums[0] += term(i);
    return warp_sum(sums[0] + sums[1] + (sums[2] + sums[3]));
}

__global__ void __launch_bounds__(128)
layernorm(const float* __restrict__ x, const float* __restrict__ weight, const float* __restrict__ bias,
          float* __restrict__ out, int N, int C, float eps) {
    const int number = blockIdx.x * 4 + threadIdx.x / 32;
    if (number >= N) return;
    const float* row = x + size_t(number) * C;
    float* to = out + size_t(number) * C;

    const float mean = sum_of([&](int i) { return row[i]; }, C) / C;
    const float squares = sum_of([&](int i) { return (row[i] - mean) * (row[i] - mean); }, C);
    const float inverse = 1.0f / sqrtf(squares / C + eps);
    for (int i = threadIdx.x % 32; i < C; i += 32) to[i] = (row[i] - mean) * inverse * weight[i] + bias[i];
}
