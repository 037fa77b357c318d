/* evoengine
name: layernorm
precision: fp32
summary: one block a row, three passes over it; two-pass variance with a corrected mean
tunables:
  THREADS: [256, 128, 512, 1024]
  VECTOR: [4, 2, 1]            # floats per load where C is a multiple of it
  ROWS_PER_BLOCK: [1, 2, 4]    # rows a block takes one after the other
let:
  V: VECTOR if C % VECTOR == 0 else 1
launches:
  - kernel: layernorm<V>
    grid: ["ceil_div(N, ROWS_PER_BLOCK)"]
    block: [THREADS]
    args: [x, weight, bias, out, N, C, eps]
*/

// out = (x - mean) / sqrt(variance + eps) * weight + bias over the rows of x [N, C],
// with the biased variance. The row is read three times: the first read comes from
// memory, the later ones mostly from the caches.

// One load or store of V floats; the alignment lets it be a single instruction.
template <int V> struct alignas(4 * V) Pack { float value[V]; };

__device__ __forceinline__ float warp_sum(float x) {
#pragma unroll
    for (int step = 16; step > 0; step /= 2) x += __shfl_xor_sync(0xffffffffu, x, step);
    return x;
}

// The sum over all threads of the block, known to each of them.
__device__ __forceinline__ float block_sum(float x) {
    __shared__ float warp_sums[32];
    const int lane = threadIdx.x % 32;
    x = warp_sum(x);
    __syncthreads();   // the previous call's sums have been read by all
    if (lane == 0) warp_sums[threadIdx.x / 32] = x;
    __syncthreads();
    return warp_sum(lane < THREADS / 32 ? warp_sums[lane] : 0.0f);
}

template <int V>
__global__ void __launch_bounds__(THREADS)
layernorm(const float* __restrict__ x, const float* __restrict__ weight, const float* __restrict__ bias,
          float* __restrict__ out, int N, int C, float eps) {
    const int packs = C / V;
    const Pack<V>* weights = reinterpret_cast<const Pack<V>*>(weight);
    const Pack<V>* biases = reinterpret_cast<const Pack<V>*>(bias);

    for (int r = 0; r < ROWS_PER_BLOCK; ++r) {
        const long long row = static_cast<long long>(blockIdx.x) * ROWS_PER_BLOCK + r;
        if (row >= N) break;   // the same for all threads, so no barrier is left waiting
        const Pack<V>* source = reinterpret_cast<const Pack<V>*>(x + row * C);
        Pack<V>* target = reinterpret_cast<Pack<V>*>(out + row * C);

        float sum = 0.0f;
        for (int i = threadIdx.x; i < packs; i += THREADS) {
            const Pack<V> p = source[i];
#pragma unroll
            for (int j = 0; j < V; ++j) sum += p.value[j];
        }
        const float mean = block_sum(sum) / C;

        // A second pass, because E[x^2] - mean^2 would subtract two nearly equal numbers.
        // Where the mean is large beside the spread, its own rounding error counts as well:
        // the deviations then do not add up to zero, and what they add up to is the error.
        float deviations = 0.0f, squares = 0.0f;
        for (int i = threadIdx.x; i < packs; i += THREADS) {
            const Pack<V> p = source[i];
#pragma unroll
            for (int j = 0; j < V; ++j) {
                const float d = p.value[j] - mean;
                deviations += d;
                squares += d * d;
            }
        }
        const float error = block_sum(deviations) / C;
        const float variance = fmaxf(block_sum(squares) / C - error * error, 0.0f);
        const float inverse_std = 1.0f / sqrtf(variance + eps);

        for (int i = threadIdx.x; i < packs; i += THREADS) {
            const Pack<V> p = source[i], w = weights[i], b = biases[i];
            Pack<V> y;
#pragma unroll
            for (int j = 0; j < V; ++j)
                y.value[j] = ((p.value[j] - mean) - error) * inverse_std * w.value[j] + b.value[j];
            target[i] = y;
        }
    }
}
