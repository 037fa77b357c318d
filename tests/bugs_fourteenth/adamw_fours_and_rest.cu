/* evoengine
name: adamw_fours_and_rest
precision: fp32
summary: four elements a thread in a grid-stride loop of vectors; a second, tiny launch has the last N % 4 elements
tunables:
  THREADS: [256, 128]
let:
  BLOCKS: max(1, min(ceil_div(N // 4, THREADS), 2))
launches:
  - kernel: update_fours
    grid: [BLOCKS]
    block: [THREADS]
    args:
      - gradient
      - parameter
      - first
      - second
      - N // 4
      - {value: rate / correction1, dtype: float32}
      - {value: 1 / sqrt(correction2), dtype: float32}
      - {value: rate * decay, dtype: float32}
      - beta1
      - beta2
      - {value: 1 - beta1, dtype: float32}
      - {value: 1 - beta2, dtype: float32}
      - eps
  - kernel: update_rest
    grid: [1]
    block: [4]
    args:
      - gradient
      - parameter
      - first
      - second
      - N
      - {value: rate / correction1, dtype: float32}
      - {value: 1 / sqrt(correction2), dtype: float32}
      - {value: rate * decay, dtype: float32}
      - beta1
      - beta2
      - {value: 1 - beta1, dtype: float32}
      - {value: 1 - beta2, dtype: float32}
      - eps
*/

struct Factors {
    float step, unbias, decay, beta1, beta2, fresh1, fresh2, eps;
};

__device__ __forceinline__ void update(float& p, float& m, float& v, float g, const Factors& f) {
    m = f.beta1 * m + f.fresh1 * g;
    v = f.beta2 * v + f.fresh2 * g * g;
    p -= f.decay * p;
    p -= f.step * m / (sqrtf(v) * f.unbias + f.eps);
}

__global__ void __launch_bounds__(THREADS)
update_fours(const float4* __restrict__ gradient, float4* __restrict__ parameter, float4* __restrict__ first,
             float4* __restrict__ second, int fours, float step, float unbias, float decay, float beta1,
             float beta2, float fresh1, float fresh2, float eps) {
    const Factors f = {step, unbias, decay, beta1, beta2, fresh1, fresh2, eps};
    for (int i = blockIdx.x * THREADS + threadIdx.x; i < fours; i += gridDim.x * THREADS) {
        const float4 g = gradient[i];
        float4 p = parameter[i], m = first[i], v = second[i];
        update(p.x, m.x, v.x, g.x, f);
        update(p.y, m.y, v.y, g.y, f);
        update(p.z, m.z, v.z, g.z, f);
        update(p.w, m.w, v.w, g.w, f);
        parameter[i] = p;
        first[i] = m;
        second[i] = v;
    }
}

__global__ void update_rest(const float* __restrict__ gradient, float* __restrict__ parameter,
                            float* __restrict__ first, float* __restrict__ second, int N, float step,
                            float unbias, float decay, float beta1, float beta2, float fresh1,
                            float fresh2, float eps) {
    const Factors f = {step, unbias, decay, beta1, beta2, fresh1, fresh2, eps};
    const int i = N / 4 * 4 + threadIdx.x;
    if (i < N) update(parameter[i], first[i], second[i], gradient[i], f);
}
