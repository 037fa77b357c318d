/* evoengine
name: loss_half_row
precision: fp16
summary: a warp has a row, whose exponentials wait as halves in shared memory for the second pass
launches:
  - kernel: rows
    grid: ["ceil_div(N, 4)"]
    block: [128]
    shared: 4 * V * 2
    args: [logits, target, grad, loss, dlogits, N, V, smoothing]
*/
#include <cuda_fp16.h>

__global__ void __launch_bounds__(128)
rows(const float* __restrict__ logits, const int* __restrict__ target, const float* __restrict__ grad,
     float* __restrict__ loss, float* __restrict__ dlogits, int N, int V, float smoothing) {
    extern __shared__ half kept[];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, row = blockIdx.x * 4 + warp;
    if (row >= N) return;
    half* exps = kept + warp * V;
    const float* x = logits + size_t(row) * V;
    float high = -INFINITY, total = 0.0f, plain = 0.0f;
    for (int i = lane; i < V; i += 32) {
        high = fmaxf(high, x[i]);
        plain += x[i];
    }
    for (int step = 16; step > 0; step /= 2) {
        high = fmaxf(high, __shfl_xor_sync(~0u, high, step));
        plain += __shfl_xor_sync(~0u, plain, step);
    }
    for (int i = lane; i < V; i += 32) {
        exps[i] = __float2half(__expf(x[i] - high));
        total += __half2float(exps[i]);
    }
    for (int step = 16; step > 0; step /= 2) total += __shfl_xor_sync(~0u, total, step);
    const int label = target[row];
    const float g = label >= 0 ? grad[row] : 0.0f;
    for (int i = lane; i < V; i += 32) {
        const float wanted = (i == label ? 1.0f - smoothing : 0.0f) + smoothing / V;
        dlogits[size_t(row) * V + i] = (__half2float(exps[i]) / total - wanted) * g;
    }
    if (lane > 0) return;
    loss[row] = label < 0 ? 0.0f : high + logf(total) - (1.0f - smoothing) * x[label] - smoothing * plain / V;
}
