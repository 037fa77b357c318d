/* evoengine
name: layernorm_registers_block
precision: fp32
summary: a block of 128 threads keeps its row in registers, in vectors of four where the width allows it; mean and variance by two reductions over the block
let:
  V: 4 if C % 4 == 0 else 1
  PACKS: ceil_div(C, 128 * V)
launches:
  - kernel: "layer_norm<V, PACKS>"
    grid: [N]
    block: [128]
    args: [x, weight, bias, out, C, eps]
*/
constexpr int THREADS = 128, WARPS = THREADS / 32;

template <int V> struct alignas(4 * V) Pack { float f[V]; };

__device__ __forceinline__ float warp_reduce(float value) {
#pragma unroll
    for (int delta = 16; delta > 0; delta >>= 1) value += __shfl_down_sync(0xffffffffu, value, delta);
    return value;
}

// The sum over the block, in every thread.
__device__ __forceinline__ float block_reduce(float value, float* partial) {
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    value = warp_reduce(value);
    if (lane == 0) partial[warp] = value;
    __syncthreads();
    if (warp == 0) {
        value = warp_reduce(lane < WARPS ? partial[lane] : 0.0f);
        if (lane == 0) partial[WARPS] = value;
    }
    __syncthreads();
    return partial[WARPS];
}

template <int V, int PACKS>
__global__ void __launch_bounds__(THREADS)
layer_norm(const float* __restrict__ x, const float* __restrict__ weight, const float* __restrict__ bias,
           float* __restrict__ out, int C, float eps) {
    __shared__ float partial_sum[WARPS + 1], partial_square[WARPS + 1];
    const int packs = C / V;
    const Pack<V>* row = reinterpret_cast<const Pack<V>*>(x + size_t(blockIdx.x) * C);

    Pack<V> kept[PACKS];
    float sum = 0.0f;
#pragma unroll
    for (int p = 0; p < PACKS; ++p) {
        const int at = p * THREADS + threadIdx.x;
        if (at < packs) {
            kept[p] = row[at];
#pragma unroll
            for (int j = 0; j < V; ++j) sum += kept[p].f[j];
        }
    }
    const float mean = block_reduce(sum, partial_sum) / C;

    float square = 0.0f;
#pragma unroll
    for (int p = 0; p < PACKS; ++p) {
        if (p * THREADS + threadIdx.x < packs) {
#pragma unroll
            for (int j = 0; j < V; ++j) {
                kept[p].f[j] -= mean;
                square = fmaf(kept[p].f[j], kept[p].f[j], square);
            }
        }
    }
    const float variance = block_reduce(square, partial_square) / C;
    const float inv_std = 1.0f / sqrtf(variance + eps);

    Pack<V>* target = reinterpret_cast<Pack<V>*>(out + size_t(blockIdx.x) * C);
#pragma unroll
    for (int p = 0; p < PACKS; ++p) {
        const int at = p * THREADS + threadIdx.x;
        if (at < packs) {
            const Pack<V> gain = reinterpret_cast<const Pack<V>*>(weight)[at];
            const Pack<V> shift = reinterpret_cast<const Pack<V>*>(bias)[at];
            Pack<V> result;
#pragma unroll
            for (int j = 0; j < V; ++j) result.f[j] = fmaf(kept[p].f[j] * inv_std, gain.f[j], shift.f[j]);
            target[at] = result;
        }
    }
}
