/* evoengine
name: adamw_folded_corrections
precision: fp32
summary: both bias corrections folded into the size of the step; a grid of limited size strides over packs of four
tunables:
  THREADS: [256, 128]
launches:
  - kernel: step
    grid: ["max(1, min(ceil_div(N, 4 * THREADS), 4 * SM_COUNT))"]
    block: [THREADS]
    args:
      - gradient
      - parameter
      - first
      - second
      - N
      - rate
      - decay
      - beta1
      - beta2
      - {value: 1 - beta1, dtype: float32}
      - {value: 1 - beta2, dtype: float32}
      - eps
      - correction1
      - correction2
*/

struct Rule { float rate, keep, beta1, beta2, fresh1, fresh2, size, eps; };

__device__ __forceinline__ void move(float g, float& p, float& m, float& v, const Rule& rule) {
    m = fmaf(rule.beta1, m, rule.fresh1 * g);
    v = fmaf(rule.beta2, v, rule.fresh2 * g * g);
    p = p * rule.keep - rule.size * m / (sqrtf(v) + rule.eps);
}

__global__ void __launch_bounds__(THREADS)
step(const float* __restrict__ gradient, float* __restrict__ parameter, float* __restrict__ first, float* __restrict__ second, int N,
     float rate, float decay, float beta1, float beta2, float fresh1, float fresh2, float eps, float correction1, float correction2) {
    // m / c1 / (sqrt(v / c2) + eps) = m * sqrt(c2) / c1 / (sqrt(v) + eps * sqrt(c2))
    const float root = sqrtf(correction2);
    Rule rule;
    rule.keep = 1.0f - rate * decay;
    rule.beta1 = beta1;
    rule.beta2 = beta2;
    rule.fresh1 = fresh1;
    rule.fresh2 = fresh2;
    rule.size = rate * root / correction1;
    rule.eps = eps * root;
    const int self = blockIdx.x * THREADS + threadIdx.x, all = gridDim.x * THREADS, packs = N / 4;
    for (int i = self; i < packs; i += all) {
        const float4 g = reinterpret_cast<const float4*>(gradient)[i];
        float4 p = reinterpret_cast<float4*>(parameter)[i];
        float4 m = reinterpret_cast<float4*>(first)[i];
        float4 v = reinterpret_cast<float4*>(second)[i];
        move(g.x, p.x, m.x, v.x, rule);
        move(g.y, p.y, m.y, v.y, rule);
        move(g.z, p.z, m.z, v.z, rule);
        move(g.w, p.w, m.w, v.w, rule);
        reinterpret_cast<float4*>(parameter)[i] = p;
        reinterpret_cast<float4*>(first)[i] = m;
        reinterpret_cast<float4*>(second)[i] = v;
    }
    const int rest = packs * 4 + self;   // up to three elements behind the last pack
    if (rest < N) move(gradient[rest], parameter[rest], first[rest], second[rest], rule);
}
