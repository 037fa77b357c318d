/* evoengine
name: layernorm_moment_tree
precision: fp32
summary: a block has a row; every thread keeps count, mean and squared deviations of its values, which are merged pair by pair
let:
  V: 4 if C % 4 == 0 else 1
launches:
  - kernel: layernorm_moments<V>
    grid: [N]
    block: [384]
    args: [x, weight, bias, out, C, eps]
*/
constexpr int THREADS = 384;

template <int V> struct alignas(4 * V) Pack { float value[V]; };

struct Moments { float n, mean, squares; };   // squares: the sum of squared deviations from the mean

__device__ __forceinline__ Moments merged(const Moments& a, const Moments& b) {
    const float n = a.n + b.n, delta = b.mean - a.mean;
    if (n == 0.0f) return a;
    const float share = b.n / n;
    return {n, a.mean + delta * share, a.squares + b.squares + delta * delta * a.n * share};
}

__device__ __forceinline__ Moments merged_by_warp(Moments m) {
    for (int offset = 16; offset > 0; offset /= 2) {
        const Moments other = {__shfl_down_sync(0xffffffffu, m.n, offset), __shfl_down_sync(0xffffffffu, m.mean, offset),
                               __shfl_down_sync(0xffffffffu, m.squares, offset)};
        m = merged(m, other);
    }
    return m;   // right in lane 0
}

template <int V>
__global__ void __launch_bounds__(THREADS)
layernorm_moments(const float* __restrict__ x, const float* __restrict__ weight, const float* __restrict__ bias,
                  float* __restrict__ out, int C, float eps) {
    __shared__ Moments of_warp[THREADS / 32];
    __shared__ float row_mean, row_inverse;
    const Pack<V>* source = reinterpret_cast<const Pack<V>*>(x + size_t(blockIdx.x) * C);
    Pack<V>* target = reinterpret_cast<Pack<V>*>(out + size_t(blockIdx.x) * C);
    const int packs = C / V, lane = threadIdx.x % 32, warp = threadIdx.x / 32;

    Moments own = {0.0f, 0.0f, 0.0f};
    for (int i = threadIdx.x; i < packs; i += THREADS) {
        const Pack<V> some = source[i];
        for (int e = 0; e < V; ++e) {
            own.n += 1.0f;
            const float before = some.value[e] - own.mean;
            own.mean += before / own.n;
            own.squares += before * (some.value[e] - own.mean);
        }
    }
    own = merged_by_warp(own);
    if (lane == 0) of_warp[warp] = own;
    __syncthreads();
    if (warp == 0) {
        Moments some = {0.0f, 0.0f, 0.0f};
        if (lane < THREADS / 32) some = of_warp[lane];
        const Moments row = merged_by_warp(some);
        if (lane == 0) {
            row_mean = row.mean;
            row_inverse = 1.0f / sqrtf(row.squares / row.n + eps);
        }
    }
    __syncthreads();

    const float mean = row_mean, inverse = row_inverse;
    for (int i = threadIdx.x; i < packs; i += THREADS) {
        const Pack<V> some = source[i];
        const Pack<V> gain = reinterpret_cast<const Pack<V>*>(weight)[i], shift = reinterpret_cast<const Pack<V>*>(bias)[i];
        Pack<V> result;
        for (int e = 0; e < V; ++e) result.value[e] = (some.value[e] - mean) * inverse * gain.value[e] + shift.value[e];
        target[i] = result;
    }
}
