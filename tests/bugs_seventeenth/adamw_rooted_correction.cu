/* evoengine
name: adamw_rooted_correction
precision: fp32
summary: a thread has four elements a block's width apart, all loaded before the first is computed; the second correction is a factor of the root
launches:
  - kernel: update
    grid: ["ceil_div(N, 512)"]
    block: [128]
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
      - correction2
      - eps
*/
constexpr int THREADS = 128, OWN = 4;

__global__ void __launch_bounds__(THREADS)
update(const float* __restrict__ gradient, float* __restrict__ parameter, float* __restrict__ first,
       float* __restrict__ second, int N, float beta1, float beta2, float new1, float new2, float keep, float step,
       float correction2, float eps) {
    const int start = blockIdx.x * THREADS * OWN + threadIdx.x;
    const float root = 1.0f / sqrtf(correction2);
    float g[OWN], p[OWN], m[OWN], v[OWN];
#pragma unroll
    for (int j = 0; j < OWN; ++j) {
        const int i = start + j * THREADS;
        const bool inside = i < N;
        g[j] = inside ? gradient[i] : 0.0f;
        p[j] = inside ? parameter[i] : 0.0f;
        m[j] = inside ? first[i] : 0.0f;
        v[j] = inside ? second[i] : 0.0f;
    }
#pragma unroll
    for (int j = 0; j < OWN; ++j) {
        const int i = start + j * THREADS;
        if (i >= N) break;
        const float moment = fmaf(beta1, m[j], new1 * g[j]);
        const float square = fmaf(beta2, v[j], new2 * g[j] * g[j]);
        const float size = fmaf(sqrtf(square), root, eps);
        parameter[i] = p[j] * keep - step * moment / size;
        first[i] = moment;
        second[i] = square;
    }
}
