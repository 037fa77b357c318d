/* evoengine
name: adamw_grid_stride
precision: fp32
summary: a grid of fixed size strides over the elements, one at a time
tunables:
  BLOCKS: [264, 1056, 64]
  THREADS: [512, 256]
launches:
  - kernel: step
    grid: [BLOCKS]
    block: [THREADS]
    args: [gradient, parameter, first, second, N, rate, decay, beta1, beta2, eps, correction1, correction2]
*/

extern "C" __global__ void __launch_bounds__(THREADS)
step(const float* __restrict__ gradient, float* __restrict__ parameter, float* __restrict__ first, float* __restrict__ second, int N,
     float rate, float decay, float beta1, float beta2, float eps, float correction1, float correction2) {
    // 1 - 0.999f is wrong in the fifth digit: what is left of 1 is rounded once, in double
    const float new1 = float(1.0 - round(double(beta1) * 1e6) / 1e6), new2 = float(1.0 - round(double(beta2) * 1e6) / 1e6);
    for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < N; i += (long long)gridDim.x * blockDim.x) {
        const float g = gradient[i];
        const float m = fmaf(beta1, first[i], new1 * g);
        const float v = fmaf(beta2, second[i], new2 * g * g);
        first[i] = m;
        second[i] = v;
        const float size = sqrtf(v / correction2) + eps;
        const float p = parameter[i];
        parameter[i] = p - rate * (decay * p + m / correction1 / size);
    }
}
