/* evoengine
name: starter
precision: fp32                # a tier of the task
summary: one block a row, the row read twice
tunables:                      # the first value is the default; the tuner searches the others
  THREADS: [256, 128, 512, 1024]
  VECTOR: [4, 2, 1]            # floats per load where C is a multiple of it
let:                           # names for the expressions below
  V: VECTOR if C % VECTOR == 0 else 1
require:                       # choices that violate it are not tried
  - THREADS % WARP_SIZE == 0
launches:
  - kernel: rms_norm<V>        # the code below, with its template arguments
    grid: [N]                  # quote an expression that holds a comma: ["ceil_div(N, 4)"]
    block: [THREADS]
    args: [x, weight, out, C, eps]
*/

// out = x / sqrt(mean(x^2) + eps) * weight over the rows of x [N, C].
// Tunables are macros here: THREADS is a number when this is compiled.

// One load or store of V floats; the alignment lets it be a single instruction.
template <int V> struct alignas(4 * V) Pack { float value[V]; };

__device__ __forceinline__ float warp_sum(float x) {
#pragma unroll
    for (int step = 16; step > 0; step /= 2) x += __shfl_xor_sync(0xffffffffu, x, step);
    return x;
}

// The sum over all threads of the block, known to each of them.
__device__ __forceinline__ float block_sum(float x) {
    __shared__ float warp_sums[THREADS / 32];
    const int lane = threadIdx.x % 32;
    x = warp_sum(x);
    if (lane == 0) warp_sums[threadIdx.x / 32] = x;
    __syncthreads();
    return warp_sum(lane < THREADS / 32 ? warp_sums[lane] : 0.0f);
}

template <int V>
__global__ void __launch_bounds__(THREADS)
rms_norm(const float* __restrict__ x, const float* __restrict__ weight, float* __restrict__ out, int C, float eps) {
    const int packs = C / V;
    const long long first = static_cast<long long>(blockIdx.x) * C;
    const Pack<V>* source = reinterpret_cast<const Pack<V>*>(x + first);
    const Pack<V>* weights = reinterpret_cast<const Pack<V>*>(weight);
    Pack<V>* target = reinterpret_cast<Pack<V>*>(out + first);

    float squares = 0.0f;
    for (int i = threadIdx.x; i < packs; i += THREADS) {
        const Pack<V> p = source[i];
#pragma unroll
        for (int j = 0; j < V; ++j) squares += p.value[j] * p.value[j];
    }
    const float scale = 1.0f / sqrtf(block_sum(squares) / C + eps);

    for (int i = threadIdx.x; i < packs; i += THREADS) {
        const Pack<V> p = source[i], w = weights[i];
        Pack<V> y;
#pragma unroll
        for (int j = 0; j < V; ++j) y.value[j] = p.value[j] * scale * w.value[j];
        target[i] = y;
    }
}
