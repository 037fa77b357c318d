/* evoengine
name: log_probs_online_rows
precision: fp32
summary: a block a row; one pass keeps the maximum, the sum of powers and the sum of powers times exponents, a second one writes
tunables:
  THREADS: [128, 256]
let:
  WIDTH: 4 if V % 4 == 0 else 1
launches:
  - kernel: log_probs<WIDTH>
    grid: [N]
    block: [THREADS]
    args: [logits, logs, entropy, V, {value: 1 / temperature, dtype: float32}]
*/

constexpr int WARPS = THREADS / 32;

// Of numbers z: their maximum, the sum of exp(z - top), and that of exp(z - top) * (z - top).
struct Seen {
    float top, sum, moment;
};

__device__ __forceinline__ Seen moved(const Seen& seen, float top) {
    const float way = seen.top - top, fade = __expf(way);
    return {top, seen.sum * fade, (seen.moment + seen.sum * way) * fade};
}

__device__ __forceinline__ Seen joined(const Seen& a, const Seen& b) {
    const float top = fmaxf(a.top, b.top);
    const Seen left = moved(a, top), right = moved(b, top);
    return {top, left.sum + right.sum, left.moment + right.moment};
}

__device__ __forceinline__ Seen from_lane(const Seen& seen, int mask) {
    return {__shfl_xor_sync(0xffffffffu, seen.top, mask), __shfl_xor_sync(0xffffffffu, seen.sum, mask),
            __shfl_xor_sync(0xffffffffu, seen.moment, mask)};
}

template <int WIDTH>
__global__ void __launch_bounds__(THREADS)
log_probs(const float* __restrict__ logits, float* __restrict__ logs, float* __restrict__ entropy, int V,
          float cooling) {
    struct alignas(4 * WIDTH) Pack { float at[WIDTH]; };
    __shared__ Seen slots[WARPS];
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    const Pack* source = reinterpret_cast<const Pack*>(logits + size_t(blockIdx.x) * V);
    Pack* target = reinterpret_cast<Pack*>(logs + size_t(blockIdx.x) * V);
    const int packs = V / WIDTH;

    Seen seen = {-1e30f, 0.0f, 0.0f};
    for (int i = threadIdx.x; i < packs; i += THREADS) {
        const Pack pack = source[i];
#pragma unroll
        for (int j = 0; j < WIDTH; ++j) seen = joined(seen, {pack.at[j] * cooling, 1.0f, 0.0f});
    }
#pragma unroll
    for (int mask = 16; mask > 0; mask >>= 1) seen = joined(seen, from_lane(seen, mask));
    if (lane == 0) slots[warp] = seen;
    __syncthreads();
    seen = slots[0];
#pragma unroll
    for (int w = 1; w < WARPS; ++w) seen = joined(seen, slots[w]);

    const float height = logf(seen.sum);
    for (int i = threadIdx.x; i < packs; i += THREADS) {
        Pack pack = source[i];
#pragma unroll
        for (int j = 0; j < WIDTH; ++j) pack.at[j] = pack.at[j] * cooling - seen.top - height;
        target[i] = pack;
    }
    if (threadIdx.x == 0) entropy[blockIdx.x] = height - seen.moment / seen.sum;
}
