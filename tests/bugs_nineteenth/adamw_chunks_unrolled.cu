/* evoengine
name: adamw_chunks_unrolled
precision: fp32
summary: a block has a chunk of 1024 elements; each thread loads four of them a stride apart, updates them in registers and stores them
launches:
  - kernel: adamw_chunk
    grid: ["ceil_div(N, 1024)"]
    block: [256]
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
constexpr int THREADS = 256, ILP = 4, CHUNK = THREADS * ILP;

__global__ void __launch_bounds__(THREADS)
adamw_chunk(const float* __restrict__ gradient, float* __restrict__ parameter, float* __restrict__ first,
            float* __restrict__ second, int N, float lr, float weight_decay, float beta1, float beta2, float one_minus_beta1,
            float one_minus_beta2, float eps, float correction1, float correction2) {
    const int chunk = blockIdx.x * CHUNK;
    const int size = min(CHUNK, N - chunk);
    gradient += chunk;
    parameter += chunk;
    first += chunk;
    second += chunk;

    float g[ILP], p[ILP], m[ILP], v[ILP];
#pragma unroll
    for (int i = 0; i < ILP; ++i) {
        const int at = threadIdx.x + i * THREADS;
        const bool inside = at < size;
        g[i] = inside ? gradient[at] : 0.0f;
        p[i] = inside ? parameter[at] : 0.0f;
        m[i] = inside ? first[at] : 0.0f;
        v[i] = inside ? second[at] : 0.0f;
    }

#pragma unroll
    for (int i = 0; i < ILP; ++i) {
        m[i] = beta1 * m[i] + one_minus_beta1 * g[i];
        v[i] = beta2 * v[i] + one_minus_beta2 * g[i] * g[i];
        const float m_hat = m[i] / correction1;
        const float v_hat = v[i] / correction2;
        const float denominator = sqrtf(v_hat) + eps;
        const float update = m_hat / denominator + weight_decay * p[i];
        p[i] = p[i] - lr * update;
    }

#pragma unroll
    for (int i = 0; i < ILP; ++i) {
        const int at = threadIdx.x + i * THREADS;
        if (at < size) {
            parameter[at] = p[i];
            first[at] = m[i];
            second[at] = v[i];
        }
    }
}
