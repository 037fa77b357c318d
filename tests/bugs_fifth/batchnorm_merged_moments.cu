/* evoengine
name: batchnorm_merged_moments
precision: fp32
summary: a warp runs Welford's recurrence over a channel of a sample; a second launch merges samples by Chan's formula and updates the running statistics, a third applies scale and shift
let:
  V: 4 if L % 4 == 0 else 1
scratch:
  means: {dtype: float32, shape: [C, N]}
  deviations: {dtype: float32, shape: [C, N]}
  centres: {dtype: float32, shape: [C]}
  scales: {dtype: float32, shape: [C]}
launches:
  - kernel: moments
    grid: ["ceil_div(N * C, 4)"]
    block: [32, 4]
    args: [x, means, deviations, N, C, L]
  - kernel: statistics
    grid: ["ceil_div(C, 64)"]
    block: [64]
    args: [means, deviations, weight, running_mean, running_var, centres, scales, N, C, L, momentum, eps]
  - kernel: apply<V>
    grid: ["ceil_div(N * C * L // V, 256)"]
    block: [256]
    args: [x, centres, scales, bias, out, N * C * L, C, L]
*/
struct Moments {
    float count, mean, deviation;
};

// Chan, Golub and LeVeque: the moments of both samples together
__device__ __forceinline__ Moments merged(Moments a, Moments b) {
    const float count = a.count + b.count;
    if (count == 0.0f) return a;
    const float delta = b.mean - a.mean, part = b.count / count;
    return {count, fmaf(delta, part, a.mean), a.deviation + b.deviation + delta * delta * a.count * part};
}

__global__ void moments(const float* __restrict__ x, float* means, float* deviations, int N, int C, int L) {
    const int lane = threadIdx.x, line = blockIdx.x * 4 + threadIdx.y;
    if (line >= N * C) return;
    Moments own = {0.0f, 0.0f, 0.0f};
    for (int i = lane; i < L; i += 32) {
        const float value = x[size_t(line) * L + i], delta = value - own.mean;
        own.count += 1.0f;
        own.mean += delta / own.count;
        own.deviation += delta * (value - own.mean);
    }
    for (int step = 16; step > 0; step /= 2) {
        const Moments other = {__shfl_down_sync(~0u, own.count, step), __shfl_down_sync(~0u, own.mean, step),
                               __shfl_down_sync(~0u, own.deviation, step)};
        own = merged(own, other);
    }
    if (lane == 0) {
        const int sample = line / C, channel = line % C;
        means[channel * N + sample] = own.mean;
        deviations[channel * N + sample] = own.deviation;
    }
}

__global__ void statistics(const float* means, const float* deviations, const float* weight, float* running_mean,
                           float* running_var, float* centres, float* scales, int N, int C, int L, float momentum, float eps) {
    const int channel = blockIdx.x * blockDim.x + threadIdx.x;
    if (channel >= C) return;
    Moments all = {0.0f, 0.0f, 0.0f};
    for (int n = 0; n < N; ++n)
        all = merged(all, {float(L), means[channel * N + n], deviations[channel * N + n]});
    centres[channel] = all.mean;
    scales[channel] = weight[channel] / sqrtf(all.deviation / all.count + eps);
    const float kept = all.deviation / (all.count - 1.0f);
    running_mean[channel] += momentum * (all.mean - running_mean[channel]);
    running_var[channel] += momentum * (kept - running_var[channel]);
}

template <int V> struct alignas(4 * V) Pack { float value[V]; };

template <int V>
__global__ void __launch_bounds__(256)
apply(const float* __restrict__ x, const float* __restrict__ centres, const float* __restrict__ scales,
      const float* __restrict__ bias, float* __restrict__ out, int count, int C, int L) {
    const int i = (blockIdx.x * blockDim.x + threadIdx.x) * V;
    if (i >= count) return;
    const int channel = i / L % C;
    const float centre = centres[channel], scale = scales[channel], shift = bias[channel];
    Pack<V> pack = *reinterpret_cast<const Pack<V>*>(x + i);
    for (int j = 0; j < V; ++j) pack.value[j] = fmaf(pack.value[j] - centre, scale, shift);
    *reinterpret_cast<Pack<V>*>(out + i) = pack;
}
