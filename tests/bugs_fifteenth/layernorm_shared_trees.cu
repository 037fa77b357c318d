/* evoengine
name: layernorm_shared_trees
precision: fp32
summary: a block has four rows with 64 threads each; sums and squared deviations of all four are added at once in trees in shared memory
let:
  V: 4 if C % 4 == 0 else 1
launches:
  - kernel: normalise<V>
    grid: ["ceil_div(N, 4)"]
    block: [64, 4]
    args: [x, weight, bias, out, N, C, eps]
*/
constexpr int LANES = 64, ROWS = 4;

template <int V> struct alignas(4 * V) Pack { float at[V]; };

// The sum of `value` over the threads of a row, for each of them.
__device__ __forceinline__ float row_sum(float (*slots)[LANES], float value) {
    float* own = slots[threadIdx.y];
    __syncthreads();   // the sum before has been read
    own[threadIdx.x] = value;
    for (int step = LANES / 2; step > 0; step /= 2) {
        __syncthreads();
        if (threadIdx.x < step) own[threadIdx.x] += own[threadIdx.x + step];
    }
    __syncthreads();
    return own[0];
}

template <int V>
__global__ void __launch_bounds__(LANES * ROWS)
normalise(const float* __restrict__ x, const float* __restrict__ weight, const float* __restrict__ bias,
          float* __restrict__ out, int N, int C, float eps) {
    __shared__ float slots[ROWS][LANES];
    const int row = blockIdx.x * ROWS + threadIdx.y, packs = C / V;
    const size_t begin = size_t(min(row, N - 1)) * C;   // no thread may leave before the last barrier
    const Pack<V>* source = reinterpret_cast<const Pack<V>*>(x + begin);
    const Pack<V>* gains = reinterpret_cast<const Pack<V>*>(weight);
    const Pack<V>* shifts = reinterpret_cast<const Pack<V>*>(bias);
    const float share = 1.0f / C;

    float sum = 0.0f;
    for (int i = threadIdx.x; i < packs; i += LANES) {
        const Pack<V> pack = source[i];
#pragma unroll
        for (int j = 0; j < V; ++j) sum += pack.at[j];
    }
    const float mean = row_sum(slots, sum) * share;

    float squares = 0.0f;
    for (int i = threadIdx.x; i < packs; i += LANES) {
        const Pack<V> pack = source[i];
#pragma unroll
        for (int j = 0; j < V; ++j) squares = fmaf(pack.at[j] - mean, pack.at[j] - mean, squares);
    }
    const float inverse = rsqrtf(row_sum(slots, squares) * share + eps);

    if (row >= N) return;
    Pack<V>* target = reinterpret_cast<Pack<V>*>(out + begin);
    for (int i = threadIdx.x; i < packs; i += LANES) {
        const Pack<V> pack = source[i], gain = gains[i], shift = shifts[i];
        Pack<V> result;
#pragma unroll
        for (int j = 0; j < V; ++j) result.at[j] = fmaf((pack.at[j] - mean) * inverse, gain.at[j], shift.at[j]);
        target[i] = result;
    }
}
