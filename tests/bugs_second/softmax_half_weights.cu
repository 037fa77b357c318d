/* evoengine
name: softmax_half_weights
precision: fp16
summary: weights are rounded to half precision before they are summed
launches:
  - kernel: softmax
    grid: [N]
    block: [128]
    args: [x, out, C]
*/
#include <cuda_fp16.h>

constexpr int THREADS = 128, WARPS = 4, ITEMS = 4;  // up to 512 columns

__device__ float minus_infinity() { return __int_as_float(0xff800000); }

__device__ float warp_max(float x) {
    for (int step = 16; step > 0; step /= 2) x = fmaxf(x, __shfl_xor_sync(~0u, x, step));
    return x;
}

__device__ float warp_sum(float x) {
    for (int offset = 16; offset > 0; offset /= 2) x += __shfl_xor_sync(~0u, x, offset);
    return x;
}

__global__ void softmax(const float* x, float* out, int C) {
    __shared__ float maxima[WARPS];
    __shared__ float sums[WARPS];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const float* source = x + size_t(blockIdx.x) * C;
    float item[ITEMS];
    float top = minus_infinity();
    for (int i = 0; i < ITEMS; ++i) {
        const int column = threadIdx.x + i * THREADS;
        item[i] = column < C ? source[column] : minus_infinity();
        top = fmaxf(top, item[i]);
    }
    top = warp_max(top);
    if (lane == 0) maxima[warp] = top;
    __syncthreads();
    for (int w = 0; w < WARPS; ++w) top = fmaxf(top, maxima[w]);

    float sum = 0.0f;
    for (int i = 0; i < ITEMS; ++i) {
        item[i] = __half2float(__float2half(expf(item[i] - top)));
        sum += item[i];
    }
    sum = warp_sum(sum);
    if (lane == 0) sums[warp] = sum;
    __syncthreads();
    float total = 0.0f;
    for (int w = 0; w < WARPS; ++w) total += sums[w];

    const float inverse = 1.0f / total;
    for (int i = 0; i < ITEMS; ++i) {
        const int column = threadIdx.x + i * THREADS;
        if (column < C) out[size_t(blockIdx.x) * C + column] = item[i] * inverse;
    }
}
