/* evoengine
name: layernorm_chan_vectors
precision: fp32
summary: a block has a row; threads keep count, mean and squared deviations of their vectors, which are merged by Chan's formula in warps and in shared memory
let:
  V: 4 if C % 4 == 0 else 1
launches:
  - kernel: layernorm<V>
    grid: [N]
    block: [128]
    args: [x, weight, bias, out, C, eps]
*/
constexpr int THREADS = 128, WARPS = THREADS / 32;

struct Moments { float count, mean, squares; };

__device__ __forceinline__ Moments merged(Moments a, Moments b) {
    const float count = a.count + b.count;
    if (count == 0.0f) return a;
    const float delta = b.mean - a.mean, share = b.count / count;
    return {count, a.mean + delta * share, a.squares + b.squares + delta * delta * a.count * share};
}

template <int V> struct alignas(4 * V) Pack { float value[V]; };

template <int V>
__global__ void __launch_bounds__(THREADS)
layernorm(const float* __restrict__ x, const float* __restrict__ weight, const float* __restrict__ bias,
          float* __restrict__ out, int C, float eps) {
    __shared__ Moments parts[WARPS];
    const Pack<V>* row = reinterpret_cast<const Pack<V>*>(x + size_t(blockIdx.x) * C);
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;

    Moments own = {0.0f, 0.0f, 0.0f};
    for (int i = threadIdx.x; i < C / V; i += THREADS) {
        const Pack<V> piece = row[i];
        Moments some = {float(V), 0.0f, 0.0f};
        for (int e = 0; e < V; ++e) some.mean += piece.value[e];
        some.mean /= V;
        for (int e = 0; e < V; ++e) some.squares += (piece.value[e] - some.mean) * (piece.value[e] - some.mean);
        own = merged(own, some);
    }
    for (int step = 16; step > 0; step /= 2) {
        Moments other;
        other.count = __shfl_down_sync(~0u, own.count, step);
        other.mean = __shfl_down_sync(~0u, own.mean, step);
        other.squares = __shfl_down_sync(~0u, own.squares, step);
        own = merged(own, other);
    }
    if (lane == 0) parts[warp] = own;
    __syncthreads();
    own = parts[0];
    for (int w = 1; w < WARPS; ++w) own = merged(own, parts[w]);

    const float inverse = 1.0f / sqrtf(own.squares / own.count + eps);
    Pack<V>* to = reinterpret_cast<Pack<V>*>(out + size_t(blockIdx.x) * C);
    for (int i = threadIdx.x; i < C / V; i += THREADS) {
        const Pack<V> piece = row[i];
        Pack<V> result;
        for (int e = 0; e < V; ++e)
            result.value[e] = (piece.value[e] - own.mean) * inverse * weight[i * V + e] + bias[i * V + e];
        to[i] = result;
    }
}
