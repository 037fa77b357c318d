/* evoengine
name: layernorm_staged_gains
precision: fp32
summary: a block has some rows one after the other, with weight and bias staged in shared memory once; a second pass over a row corrects its mean
tunables:
  THREADS: [128, 256]
  ROWS: [4, 8]
let:
  V: 4 if C % 4 == 0 else 1
launches:
  - kernel: normalise<V>
    grid: ["ceil_div(N, ROWS)"]
    block: [THREADS]
    shared: 8 * C
    args: [x, weight, bias, out, N, C, eps]
*/

constexpr int WARPS = THREADS / 32;

template <int V> struct alignas(4 * V) Pack { float at[V]; };

__device__ __forceinline__ float2 plus(float2 a, float2 b) { return make_float2(a.x + b.x, a.y + b.y); }

// Both sums over the block, for every thread.
__device__ __forceinline__ float2 block_sums(float2 value, float2* slots) {
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
#pragma unroll
    for (int offset = 16; offset > 0; offset /= 2)
        value = plus(value, make_float2(__shfl_xor_sync(0xffffffffu, value.x, offset),
                                        __shfl_xor_sync(0xffffffffu, value.y, offset)));
    if (lane == 0) slots[warp] = value;
    __syncthreads();
    value = lane < WARPS ? slots[lane] : make_float2(0.0f, 0.0f);
#pragma unroll
    for (int offset = 16; offset > 0; offset /= 2)
        value = plus(value, make_float2(__shfl_xor_sync(0xffffffffu, value.x, offset),
                                        __shfl_xor_sync(0xffffffffu, value.y, offset)));
    __syncthreads();   // the slots can be used again
    return value;
}

template <int V>
__global__ void __launch_bounds__(THREADS)
normalise(const float* __restrict__ x, const float* __restrict__ weight, const float* __restrict__ bias,
          float* __restrict__ out, int N, int C, float eps) {
    extern __shared__ __align__(16) float gains[];   // weight, then bias
    __shared__ float2 slots[WARPS];
    float* shifts = gains + C;

    for (int c = threadIdx.x; c < C; c += THREADS) {
        gains[c] = weight[c];
        shifts[c] = bias[c];
    }
    __syncthreads();

    const int packs = C / V;
    const float inverse = 1.0f / C;
    for (int r = 0; r < ROWS; ++r) {
        const int row = blockIdx.x * ROWS + r;
        if (row >= N) break;
        const Pack<V>* source = reinterpret_cast<const Pack<V>*>(x + size_t(row) * C);
        Pack<V>* target = reinterpret_cast<Pack<V>*>(out + size_t(row) * C);

        float2 sums = make_float2(0.0f, 0.0f);
        for (int i = threadIdx.x; i < packs; i += THREADS) {
            const Pack<V> pack = source[i];
#pragma unroll
            for (int j = 0; j < V; ++j) sums.x += pack.at[j];
        }
        float mean = block_sums(sums, slots).x * inverse;

        sums = make_float2(0.0f, 0.0f);
        for (int i = threadIdx.x; i < packs; i += THREADS) {
            const Pack<V> pack = source[i];
#pragma unroll
            for (int j = 0; j < V; ++j) {
                const float d = pack.at[j] - mean;
                sums.x += d;
                sums.y = fmaf(d, d, sums.y);
            }
        }
        sums = block_sums(sums, slots);
        const float drift = sums.x * inverse;   // what rounding left in the mean
        mean += drift;
        const float variance = sums.y * inverse - drift * drift;
        const float scale = 1.0f / sqrtf(variance + eps);

        for (int i = threadIdx.x; i < packs; i += THREADS) {
            Pack<V> pack = source[i];
#pragma unroll
            for (int j = 0; j < V; ++j)
                pack.at[j] = (pack.at[j] - mean) * scale * gains[i * V + j] + shifts[i * V + j];
            target[i] = pack;
        }
    }
}
