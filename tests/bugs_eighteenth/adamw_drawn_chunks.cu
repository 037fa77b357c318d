/* evoengine
name: adamw_drawn_chunks
precision: fp32
summary: a few blocks draw chunks of 512 elements from a counter; a thread has a vector of four of each tensor, the last one of the tensor goes element by element
scratch:
  next: {dtype: int32, shape: [1], init: 0}
launches:
  - kernel: update
    grid: ["min(ceil_div(N, 512), 5)"]
    block: [128]
    args:
      - gradient
      - parameter
      - first
      - second
      - next
      - N
      - {value: 1 - beta1, dtype: float32}
      - beta2
      - {value: 1 - beta2, dtype: float32}
      - {value: 1 - rate * decay, dtype: float32}
      - {value: rate / correction1, dtype: float32}
      - {value: 1 / correction2, dtype: float32}
      - eps
*/
constexpr int THREADS = 128, CHUNK = THREADS * 4;

__global__ void __launch_bounds__(THREADS)
update(const float* __restrict__ gradient, float* __restrict__ parameter, float* __restrict__ first,
       float* __restrict__ second, int* __restrict__ next, int N, float new1, float beta2, float new2, float keep, float step,
       float rise, float eps) {
    __shared__ int drawn;
    auto change = [&](float g, float& p, float& m, float& v) {
        m = fmaf(new1, g - m, m);
        v = fmaf(beta2, v, new2 * g * g);
        p = p * keep - step * m / (sqrtf(v * rise) + eps);
    };

    while (true) {
        if (threadIdx.x == 0) drawn = atomicAdd(next, 1);
        __syncthreads();
        const int start = drawn * CHUNK;
        __syncthreads();   // all have read the number
        if (start >= N) break;

        const int i = start + threadIdx.x * 4;
        if (i + 4 <= N) {
            const float4 g = *reinterpret_cast<const float4*>(gradient + i);
            float4 p = *reinterpret_cast<float4*>(parameter + i);
            float4 m = *reinterpret_cast<float4*>(first + i);
            float4 v = *reinterpret_cast<float4*>(second + i);
            change(g.x, p.x, m.x, v.x);
            change(g.y, p.y, m.y, v.y);
            change(g.z, p.z, m.z, v.z);
            change(g.w, p.w, m.w, v.w);
            *reinterpret_cast<float4*>(parameter + i) = p;
            *reinterpret_cast<float4*>(first + i) = m;
            *reinterpret_cast<float4*>(second + i) = v;
        } else {
            for (int j = i; j < N; ++j) change(gradient[j], parameter[j], first[j], second[j]);
        }
    }
}
