/* evoengine
name: adamw_loaded_ahead
precision: fp32
summary: resident blocks stride over vectors of four and load the next one of every tensor while they compute
let:
  VECTORS: N // 4
launches:
  - kernel: adamw
    grid: ["max(1, min(ceil_div(VECTORS, 128), 4 * SM_COUNT if N >= 1048576 else 3))"]
    block: [128]
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
      - {value: 1 / correction1, dtype: float32}
      - {value: 1 / correction2, dtype: float32}
      - eps
*/

struct Constants { float rate, keep, beta1, beta2, new1, new2, scale1, scale2, eps; };

__device__ __forceinline__ void update(float g, float& p, float& m, float& v, const Constants& c) {
    m = c.beta1 * m + c.new1 * g;
    v = c.beta2 * v + c.new2 * (g * g);
    const float mean = m * c.scale1, size = sqrtf(v * c.scale2) + c.eps;
    p = p * c.keep - c.rate * (mean / size);
}

__device__ __forceinline__ void update_four(float4 g, float4& p, float4& m, float4& v, const Constants& c) {
    update(g.x, p.x, m.x, v.x, c);
    update(g.y, p.y, m.y, v.y, c);
    update(g.z, p.z, m.z, v.z, c);
    update(g.w, p.w, m.w, v.w, c);
}

extern "C" __global__ void __launch_bounds__(128)
adamw(const float* __restrict__ gradient, float* __restrict__ parameter, float* __restrict__ first,
      float* __restrict__ second, int N, float rate, float decay, float beta1, float beta2, float new1, float new2,
      float scale1, float scale2, float eps) {
    const Constants c = {rate, 1.0f - rate * decay, beta1, beta2, new1, new2, scale1, scale2, eps};
    const int vectors = N / 4, stride = gridDim.x * blockDim.x, id = blockIdx.x * blockDim.x + threadIdx.x;
    const float4* gradients = reinterpret_cast<const float4*>(gradient);
    float4* parameters = reinterpret_cast<float4*>(parameter);
    float4* firsts = reinterpret_cast<float4*>(first);
    float4* seconds = reinterpret_cast<float4*>(second);

    float4 g, p, m, v;
    if (id < vectors) g = gradients[id], p = parameters[id], m = firsts[id], v = seconds[id];
    for (int i = id; i < vectors; i += stride) {
        const int next = i + stride;
        float4 next_g, next_p, next_m, next_v;
        if (next < vectors) next_g = gradients[next], next_p = parameters[next], next_m = firsts[next], next_v = seconds[next];
        update_four(g, p, m, v, c);
        parameters[i] = p;
        firsts[i] = m;
        seconds[i] = v;
        g = next_g, p = next_p, m = next_m, v = next_v;
    }

    const int rest = vectors * 4 + id;   // fewer than four
    if (rest < N) update(gradient[rest], parameter[rest], first[rest], second[rest], c);
}
