/* evoengine
name: layernorm_cached_row
precision: fp32
summary: one block a row, which it keeps in registers; mean, then squared deviations, by shuffles and one slot a warp
tunables:
  THREADS: [128, 256, 512]
let:
  V: 4 if C % 4 == 0 else 1
  KEPT: ceil_div(C, THREADS * V)   # vectors a thread keeps
launches:
  - kernel: normalise_row<V, KEPT>
    grid: [N]
    block: [THREADS]
    args: [x, weight, bias, out, C, eps]
*/

template <int V> struct alignas(4 * V) Vec { float at[V]; };

// The total over the block, for every thread; `slots` may not be in use by an earlier call.
__device__ __forceinline__ float block_total(float value, float* slots) {
#pragma unroll
    for (int offset = 16; offset > 0; offset >>= 1)
        value += __shfl_down_sync(0xffffffffu, value, offset);
    if ((threadIdx.x & 31) == 0) slots[threadIdx.x >> 5] = value;
    __syncthreads();
    float total = 0.0f;
#pragma unroll
    for (int w = 0; w < THREADS / 32; ++w) total += slots[w];
    return total;
}

template <int V, int KEPT>
__global__ void __launch_bounds__(THREADS)
normalise_row(const float* __restrict__ x, const float* __restrict__ weight,
              const float* __restrict__ bias, float* __restrict__ out, int C, float eps) {
    __shared__ float slots[3][THREADS / 32];
    const size_t start = static_cast<size_t>(blockIdx.x) * C;
    const int vectors = C / V;
    const Vec<V>* source = reinterpret_cast<const Vec<V>*>(x + start);

    Vec<V> kept[KEPT];
    float sum = 0.0f;
#pragma unroll
    for (int k = 0; k < KEPT; ++k) {
        const int i = k * THREADS + threadIdx.x;
        if (i < vectors) {
            kept[k] = source[i];
#pragma unroll
            for (int j = 0; j < V; ++j) sum += kept[k].at[j];
        }
    }
    float mean = block_total(sum, slots[0]) / C;

    float residue = 0.0f;
#pragma unroll
    for (int k = 0; k < KEPT; ++k)
        if (k * THREADS + threadIdx.x < vectors) {
#pragma unroll
            for (int j = 0; j < V; ++j) residue += kept[k].at[j] - mean;
        }
    mean += block_total(residue, slots[1]) / C;   // the rounding of the first sum

    float squares = 0.0f;
#pragma unroll
    for (int k = 0; k < KEPT; ++k)
        if (k * THREADS + threadIdx.x < vectors) {
#pragma unroll
            for (int j = 0; j < V; ++j) {
                const float d = kept[k].at[j] - mean;
                squares = fmaf(d, d, squares);
            }
        }
    const float variance = block_total(squares, slots[2]) / C;
    const float scale = 1.0f / sqrtf(variance + eps);

    const Vec<V>* gains = reinterpret_cast<const Vec<V>*>(weight);
    const Vec<V>* shifts = reinterpret_cast<const Vec<V>*>(bias);
    Vec<V>* target = reinterpret_cast<Vec<V>*>(out + start);
#pragma unroll
    for (int k = 0; k < KEPT; ++k) {
        const int i = k * THREADS + threadIdx.x;
        if (i < vectors) {
            const Vec<V> gain = gains[i], shift = shifts[i];
            Vec<V> y;
#pragma unroll
            for (int j = 0; j < V; ++j)
                y.at[j] = (kept[k].at[j] - mean) * scale * gain.at[j] + shift.at[j];
            target[i] = y;
        }
    }
}
