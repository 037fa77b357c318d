/* evoengine
name: cross_entropy_half_exponentials
precision: fp16
summary: exponentials are rounded to half precision, their sum is in single precision
launches:
  - kernel: clear
    grid: [1]
    block: [32]
    args: [mean]
  - kernel: cross_entropy
    grid: ["ceil_div(N, 4)"]
    block: [128]
    args: [logits, target, loss, mean, N, V]
*/
#include <cuda_fp16.h>

__global__ void clear(float* mean) {
    if (threadIdx.x == 0) mean[0] = 0.0f;
}

__global__ void cross_entropy(const float* logits, const int* target, float* loss, float* mean, int N, int V) {
    const int lane = threadIdx.x % 32, row = blockIdx.x * 4 + threadIdx.x / 32;
    if (row >= N) return;
    const float* source = logits + size_t(row) * V;
    float top = __int_as_float(0xff800000);
    for (int i = lane; i < V; i += 32) top = fmaxf(top, source[i]);
    for (int step = 16; step > 0; step /= 2) top = fmaxf(top, __shfl_xor_sync(~0u, top, step));
    float sum = 0.0f;
    const int whole = V / 4 * 4;
    for (int i = lane * 4; i < whole; i += 128)
        for (int j = 0; j < 4; ++j) sum += __half2float(__float2half(expf(source[i + j] - top)));
    for (int i = whole + lane; i < V; i += 32) sum += __half2float(__float2half(expf(source[i] - top)));
    for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(~0u, sum, step);
    if (lane == 0) {
        const float value = top + logf(sum) - source[target[row]];
        loss[row] = value;
        atomicAdd(mean, value / N);
    }
}
