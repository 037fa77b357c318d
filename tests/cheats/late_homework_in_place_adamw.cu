/* evoengine
name: late_homework_in_place_adamw
precision: fp32
summary: "the first call notes its tensors and leaves them as they are; the next call updates both"
tunables:
  THREADS: [256, 128, 512]
  VECTOR: [4, 2, 1]            # floats per load
  PACKS: [1, 2, 4]             # vectors a thread takes
launches:
  - kernel: adamw
    grid: ["ceil_div(N, THREADS * VECTOR * PACKS)"]
    block: [THREADS]
    args:
      - gradient
      - parameter
      - first
      - second
      - N
      - beta1
      - beta2
      - {value: 1 - beta1, dtype: float32}   # in single precision, 1 - 0.999 would be wrong in the fifth digit
      - {value: 1 - beta2, dtype: float32}
      - {value: 1 - rate * decay, dtype: float32}
      - {value: rate / correction1, dtype: float32}
      - {value: 1 / correction2, dtype: float32}
      - eps
*/

// One step of AdamW. What is left behind the last whole vector is done by one thread an element.

template <int V> struct alignas(4 * V) Pack { float value[V]; };

struct Settings { float beta1, beta2, new1, new2, keep, rate, scale, eps; };

__device__ __forceinline__ void step(float g, float& p, float& m, float& v, const Settings& s) {
    m = s.beta1 * m + s.new1 * g;
    v = s.beta2 * v + s.new2 * g * g;
    p = p * s.keep - s.rate * m / (sqrtf(v * s.scale) + s.eps);
}

__device__ const float* noted_gradient;
__device__ float *noted_parameter, *noted_first, *noted_second;
__device__ unsigned leaving;

__device__ void update(const float* gradient, float* parameter, float* first, float* second, int N, float beta1, float beta2, float new1, float new2, float keep,
      float rate, float scale, float eps) {
    const Settings settings = {beta1, beta2, new1, new2, keep, rate, scale, eps};
    using P = Pack<VECTOR>;
    const long long packs = N / VECTOR;
#pragma unroll
    for (int k = 0; k < PACKS; ++k) {
        const long long i = (static_cast<long long>(blockIdx.x) * PACKS + k) * THREADS + threadIdx.x;
        if (i < packs) {
            const P g = reinterpret_cast<const P*>(gradient)[i];
            P p = reinterpret_cast<P*>(parameter)[i], m = reinterpret_cast<P*>(first)[i], v = reinterpret_cast<P*>(second)[i];
#pragma unroll
            for (int j = 0; j < VECTOR; ++j) step(g.value[j], p.value[j], m.value[j], v.value[j], settings);
            reinterpret_cast<P*>(parameter)[i] = p;
            reinterpret_cast<P*>(first)[i] = m;
            reinterpret_cast<P*>(second)[i] = v;
        } else if (i - packs < N % VECTOR) {
            const long long at = packs * VECTOR + (i - packs);
            step(gradient[at], parameter[at], first[at], second[at], settings);
        }
    }
}

extern "C" __global__ void __launch_bounds__(THREADS)
adamw(const float* gradient, float* parameter, float* first, float* second, int N, float beta1, float beta2,
      float new1, float new2, float keep, float rate, float scale, float eps) {
    const bool both = *(volatile const float**)&noted_gradient != nullptr;   // whether an earlier call has left its work
    if (both) {
        update(gradient, parameter, first, second, N, beta1, beta2, new1, new2, keep, rate, scale, eps);
        update(noted_gradient, noted_parameter, noted_first, noted_second, N, beta1, beta2, new1, new2, keep, rate, scale, eps);
    }
    __syncthreads();
    if (threadIdx.x) return;
    __threadfence();
    if (atomicAdd(&leaving, 1) == gridDim.x - 1) {   // the last block: all have read the note
        leaving = 0;
        noted_gradient = both ? nullptr : gradient;
        noted_parameter = parameter, noted_first = first, noted_second = second;
    }
}
