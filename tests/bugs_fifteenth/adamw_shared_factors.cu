/* evoengine
name: adamw_shared_factors
precision: fp32
summary: the first thread of a block computes the factors of the step for all others in double precision; a thread has eight elements of a tile, and only the last tile compares places with the end
launches:
  - kernel: take_step
    grid: ["ceil_div(N, 1024)"]
    block: [128]
    args:
      - gradient
      - parameter
      - first
      - second
      - N
      - {value: rate, dtype: float64}
      - {value: decay, dtype: float64}
      - {value: beta1, dtype: float64}
      - {value: beta2, dtype: float64}
      - {value: correction1, dtype: float64}
      - {value: correction2, dtype: float64}
      - eps
*/
constexpr int THREADS = 128, EACH = 8, TILE = THREADS * EACH;

struct Factors {
    float keep1, fresh1, keep2, fresh2, shrink, size, unbias;
};

// The elements of a tile that begins at `begin`; all loads come before the first store.
template <bool WHOLE>
__device__ __forceinline__ void update(const float* __restrict__ gradient, float* __restrict__ parameter,
                                       float* __restrict__ first, float* __restrict__ second, int begin, int N,
                                       const Factors& f, float eps) {
    float g[EACH], p[EACH], m[EACH], v[EACH];
#pragma unroll
    for (int j = 0; j < EACH; ++j) {
        const int i = begin + j * THREADS + threadIdx.x;
        if (WHOLE || i < N) {
            g[j] = gradient[i];
            p[j] = parameter[i];
            m[j] = first[i];
            v[j] = second[i];
        }
    }
#pragma unroll
    for (int j = 0; j < EACH; ++j) {
        const int i = begin + j * THREADS + threadIdx.x;
        if (WHOLE || i < N) {
            const float m_new = f.keep1 * m[j] + f.fresh1 * g[j];
            const float v_new = f.keep2 * v[j] + f.fresh2 * g[j] * g[j];
            first[i] = m_new;
            second[i] = v_new;
            parameter[i] = p[j] * f.shrink - f.size * m_new / (sqrtf(v_new) * f.unbias + eps);
        }
    }
}

__global__ void __launch_bounds__(THREADS)
take_step(const float* __restrict__ gradient, float* __restrict__ parameter, float* __restrict__ first,
          float* __restrict__ second, int N, double rate, double decay, double beta1, double beta2,
          double correction1, double correction2, float eps) {
    __shared__ Factors shared;
    if (threadIdx.x == 0) {
        shared.keep1 = float(beta1);
        shared.fresh1 = float(1.0 - beta1);
        shared.keep2 = float(beta2);
        shared.fresh2 = float(1.0 - beta2);
        shared.shrink = float(1.0 - rate * decay);
        shared.size = float(rate / correction1);
        shared.unbias = float(1.0 / sqrt(correction2));
    }
    __syncthreads();
    const Factors f = shared;
    const int begin = blockIdx.x * TILE;
    if (begin + TILE <= N)
        update<true>(gradient, parameter, first, second, begin, N, f, eps);
    else
        update<false>(gradient, parameter, first, second, begin, N, f, eps);
}
