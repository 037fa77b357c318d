/* evoengine
name: adamw_prefetched_vectors
precision: fp32
summary: persistent blocks; a thread has loaded its next four vectors before it works on the present ones
tunables:
  BLOCKS_PER_SM: [2, 4, 1]
  THREADS: [256, 128]
let:
  BLOCKS: min(BLOCKS_PER_SM * SM_COUNT, max(1, ceil_div(N, 4 * THREADS)))
launches:
  - kernel: step
    grid: [BLOCKS]
    block: [THREADS]
    args:
      - gradient
      - parameter
      - first
      - second
      - N
      - beta1
      - beta2
      - {value: 1 - beta1, dtype: float32}
      - {value: 1 - beta2, dtype: float32}
      - {value: 1 - rate * decay, dtype: float32}
      - {value: rate / correction1, dtype: float32}
      - {value: 1 / correction2, dtype: float32}
      - eps
*/

struct Settings { float beta1, beta2, new1, new2, keep, rate, scale, eps; };
struct Vectors { float4 g, p, m, v; };

__device__ __forceinline__ void update(float g, float& p, float& m, float& v, const Settings& s) {
    m = s.beta1 * m + s.new1 * g;
    v = s.beta2 * v + s.new2 * g * g;
    p = p * s.keep - s.rate * m / (sqrtf(v * s.scale) + s.eps);
}

__device__ __forceinline__ Vectors loaded(const float* gradient, const float* parameter, const float* first, const float* second, long long at) {
    return {reinterpret_cast<const float4*>(gradient)[at], reinterpret_cast<const float4*>(parameter)[at],
            reinterpret_cast<const float4*>(first)[at], reinterpret_cast<const float4*>(second)[at]};
}

__global__ void __launch_bounds__(THREADS)
step(const float* __restrict__ gradient, float* __restrict__ parameter, float* __restrict__ first, float* __restrict__ second, int N,
     float beta1, float beta2, float new1, float new2, float keep, float rate, float scale, float eps) {
    const Settings settings = {beta1, beta2, new1, new2, keep, rate, scale, eps};
    const long long vectors = N / 4, stride = (long long)gridDim.x * THREADS;
    long long at = (long long)blockIdx.x * THREADS + threadIdx.x;
    if (at < N % 4) {
        const long long tail = vectors * 4 + at;
        update(gradient[tail], parameter[tail], first[tail], second[tail], settings);
    }
    if (at >= vectors) return;
    Vectors now = loaded(gradient, parameter, first, second, at);
    while (true) {
        const long long next = at + stride;
        Vectors ahead = now;
        if (next < vectors) ahead = loaded(gradient, parameter, first, second, next);
        update(now.g.x, now.p.x, now.m.x, now.v.x, settings);
        update(now.g.y, now.p.y, now.m.y, now.v.y, settings);
        update(now.g.z, now.p.z, now.m.z, now.v.z, settings);
        update(now.g.w, now.p.w, now.m.w, now.v.w, settings);
        reinterpret_cast<float4*>(parameter)[at] = now.p;
        reinterpret_cast<float4*>(first)[at] = now.m;
        reinterpret_cast<float4*>(second)[at] = now.v;
        if (next >= vectors) break;
        at = next;
        now = ahead;
    }
}
