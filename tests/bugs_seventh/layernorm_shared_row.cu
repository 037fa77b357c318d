/* evoengine
name: layernorm_shared_row
precision: fp32
summary: a block has a row, which it keeps in shared memory; four values at once where the length allows
let:
  V: 4 if C % 4 == 0 else 1
launches:
  - kernel: layernorm<V>
    grid: [N]
    block: [256]
    shared: 4 * round_up(C, 4)
    args: [x, weight, bias, out, C, eps]
*/
constexpr int THREADS = 256, WARPS = THREADS / 32;

template <int V> struct alignas(4 * V) Pack { float value[V]; };

// The sum over the block, in every thread.
__device__ float block_sum(float value, float* partial) {
    for (int step = 16; step > 0; step /= 2) value += __shfl_xor_sync(~0u, value, step);
    __syncthreads();    // all have read the sums of an earlier call
    if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = value;
    __syncthreads();
    float whole = 0.0f;
    for (int w = 0; w < WARPS; ++w) whole += partial[w];
    return whole;
}

template <int V>
__global__ void __launch_bounds__(THREADS)
layernorm(const float* __restrict__ x, const float* __restrict__ weight, const float* __restrict__ bias,
          float* __restrict__ out, int C, float eps) {
    extern __shared__ __align__(16) float row[];
    __shared__ float partial[WARPS];
    Pack<V>* kept = reinterpret_cast<Pack<V>*>(row);
    const Pack<V>* from = reinterpret_cast<const Pack<V>*>(x + size_t(blockIdx.x) * C);
    Pack<V>* to = reinterpret_cast<Pack<V>*>(out + size_t(blockIdx.x) * C);

    float sum = 0.0f;
    for (int i = threadIdx.x; i < C / V; i += THREADS) {
        const Pack<V> pack = from[i];
        kept[i] = pack;
        for (int j = 0; j < V; ++j) sum += pack.value[j];
    }
    const float mean = block_sum(sum, partial) / C;

    float squares = 0.0f;
    for (int i = threadIdx.x; i < C / V; i += THREADS)
        for (int j = 0; j < V; ++j) {
            const float distance = kept[i].value[j] - mean;
            squares += distance * distance;
        }
    const float variance = block_sum(squares, partial) / C;
    const float inverse = 1.0f / sqrtf(variance + eps);

    for (int i = threadIdx.x; i < C / V; i += THREADS) {
        const Pack<V> scale = reinterpret_cast<const Pack<V>*>(weight)[i];
        const Pack<V> shift = reinterpret_cast<const Pack<V>*>(bias)[i];
        Pack<V> pack = kept[i];
        for (int j = 0; j < V; ++j) pack.value[j] = (pack.value[j] - mean) * inverse * scale.value[j] + shift.value[j];
        to[i] = pack;
    }
}
