/* evoengine
name: adamw_strided_packs
precision: fp32
summary: a fixed grid strides over packs of four floats, and the first threads take what is left over
tunables:
  THREADS: [64, 128, 256]
  PER_SM: [8, 16, 4]           # blocks
launches:
  - kernel: adamw_step
    grid: ["min(PER_SM * SM_COUNT, ceil_div(N, 16 * THREADS))"]   # four packs a thread or more
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

struct Hyper {
    float rate, decay, beta1, beta2, gain1, gain2, eps, step_size, root2;
};

__device__ __forceinline__ void update(const Hyper& h, float g, float& p, float& m, float& v) {
    m = fmaf(h.beta1, m, h.gain1 * g);
    v = fmaf(h.beta2, v, h.gain2 * g * g);
    const float denominator = sqrtf(v) / h.root2 + h.eps;
    p -= h.rate * h.decay * p;
    p -= h.step_size * (m / denominator);
}

__global__ void __launch_bounds__(THREADS)
adamw_step(const float* __restrict__ gradient, float* __restrict__ parameter,
           float* __restrict__ first, float* __restrict__ second, int N, float rate, float decay,
           float beta1, float beta2, float gain1, float gain2, float eps, float correction1,
           float correction2) {
    Hyper h;
    h.rate = rate;
    h.decay = decay;
    h.beta1 = beta1;
    h.beta2 = beta2;
    h.gain1 = gain1;
    h.gain2 = gain2;
    h.eps = eps;
    h.step_size = rate / correction1;
    h.root2 = sqrtf(correction2);

    const int packs = N / 4;
    const int stride = gridDim.x * blockDim.x;
    const int start = blockIdx.x * blockDim.x + threadIdx.x;
    const float4* gradients = reinterpret_cast<const float4*>(gradient);
    float4* parameters = reinterpret_cast<float4*>(parameter);
    float4* firsts = reinterpret_cast<float4*>(first);
    float4* seconds = reinterpret_cast<float4*>(second);

    for (int i = start; i < packs; i += stride) {
        const float4 g = gradients[i];
        float4 p = parameters[i];
        float4 m = firsts[i];
        float4 v = seconds[i];
        update(h, g.x, p.x, m.x, v.x);
        update(h, g.y, p.y, m.y, v.y);
        update(h, g.z, p.z, m.z, v.z);
        update(h, g.w, p.w, m.w, v.w);
        parameters[i] = p;
        firsts[i] = m;
        seconds[i] = v;
    }

    // one to three elements may lie behind the last pack
    const int tail = packs * 4 + start;
    if (tail < N) {
        float p = parameter[tail], m = first[tail], v = second[tail];
        update(h, gradient[tail], p, m, v);
        parameter[tail] = p;
        first[tail] = m;
        second[tail] = v;
    }
}
