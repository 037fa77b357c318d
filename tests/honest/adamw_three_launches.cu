/* evoengine
name: adamw_three_launches
precision: fp32
summary: each tensor is updated by a launch of its own; the last one reads what the first two have written in place
tunables:
  THREADS: [256, 1024]
launches:
  - kernel: blend<false>
    grid: ["ceil_div(N, THREADS)"]
    block: [THREADS]
    args: [gradient, first, N, beta1, {value: 1 - beta1, dtype: float32}]
  - kernel: blend<true>
    grid: ["ceil_div(N, THREADS)"]
    block: [THREADS]
    args: [gradient, second, N, beta2, {value: 1 - beta2, dtype: float32}]
  - kernel: move
    grid: ["ceil_div(N, THREADS)"]
    block: [THREADS]
    args: [first, second, parameter, N, {value: 1 - rate * decay, dtype: float32}, {value: rate / correction1, dtype: float32}, {value: correction2 ** 0.5, dtype: float32}, eps]
*/

template <bool SQUARED>
__global__ void blend(const float* __restrict__ gradient, float* moment, int N, float keep, float take) {
    const int i = blockIdx.x * THREADS + threadIdx.x;
    if (i >= N) return;
    const float g = gradient[i];
    moment[i] = keep * moment[i] + take * (SQUARED ? g * g : g);
}

__global__ void move(const float* __restrict__ first, const float* __restrict__ second, float* parameter, int N, float keep, float rate, float root, float eps) {
    const int i = blockIdx.x * THREADS + threadIdx.x;
    if (i < N) parameter[i] = parameter[i] * keep - rate * first[i] / (sqrtf(second[i]) / root + eps);
}
