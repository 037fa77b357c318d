/* evoengine
name: adamw_decay_ahead
precision: fp32
summary: a launch decays the parameter and updates the first moment, a second one updates the second moment and takes the step
launches:
  - kernel: decay_and_first
    grid: ["ceil_div(N, 1024)"]
    block: [256]
    args: [gradient, parameter, first, N, beta1, {value: 1 - beta1, dtype: float32}, {value: 1 - rate * decay, dtype: float32}]
  - kernel: second_and_step
    grid: ["ceil_div(N, 1024)"]
    block: [256]
    args: [gradient, parameter, first, second, N, beta2, {value: 1 - beta2, dtype: float32}, rate, eps, correction1, correction2]
*/

__global__ void __launch_bounds__(256)
decay_and_first(const float* __restrict__ gradient, float* __restrict__ parameter, float* __restrict__ first, int N, float beta1,
                float fresh, float keep) {
    int i = blockIdx.x * 1024 + threadIdx.x;
    for (int k = 0; k < 4; ++k, i += 256) {
        if (i >= N) return;
        parameter[i] *= keep;
        first[i] = beta1 * first[i] + fresh * gradient[i];
    }
}

__global__ void __launch_bounds__(256)
second_and_step(const float* __restrict__ gradient, float* __restrict__ parameter, const float* __restrict__ first,
                float* __restrict__ second, int N, float beta2, float fresh, float rate, float eps, float correction1,
                float correction2) {
    const int begin = blockIdx.x * 1024, end = min(N, begin + 1024);
    for (int i = begin + threadIdx.x; i < end; i += 256) {
        const float g = gradient[i];
        const float v = beta2 * second[i] + fresh * g * g;
        second[i] = v;
        const float mean = first[i] / correction1, square = v / correction2;
        parameter[i] -= rate * mean / (sqrtf(square) + eps);
    }
}
