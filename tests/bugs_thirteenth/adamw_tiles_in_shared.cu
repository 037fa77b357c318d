/* evoengine
name: adamw_tiles_in_shared
precision: fp32
summary: tiles of all four tensors come to shared memory by cp.async, the next tile while one is updated
tunables:
  THREADS: [128, 64]
  TILES: [4, 2]
let:
  SPAN: 4 * THREADS
launches:
  - kernel: adamw_tiles
    grid: ["ceil_div(N, SPAN * TILES)"]
    block: [THREADS]
    args:
      - gradient
      - parameter
      - first
      - second
      - N
      - beta1
      - beta2
      - {value: 1 - beta1, dtype: float32}
      - {value: 1 - beta2, dtype: float32}
      - {value: 1 - rate * decay, dtype: float32}
      - rate
      - {value: 1 / correction1, dtype: float32}
      - {value: 1 / correction2, dtype: float32}
      - eps
*/

constexpr int SPAN = 4 * THREADS;   // elements of a tile

__device__ __forceinline__ void copy16(float* shared, const float* global, int bytes) {
    const unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(shared));
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                 :: "r"(address), "l"(global), "r"(bytes) : "memory");
}

// A thread brings four elements of every tensor; what lies behind the end becomes zero.
__device__ __forceinline__ void fetch(float (*stage)[SPAN], const float* const* sources,
                                      long long base, int N) {
    const int at = threadIdx.x * 4;
    const long long left = N - (base + at);
    const int count = left >= 4 ? 4 : left > 0 ? static_cast<int>(left) : 0;
#pragma unroll
    for (int t = 0; t < 4; ++t)
        copy16(&stage[t][at], sources[t] + (count > 0 ? base + at : 0), count * 4);
}

__global__ void __launch_bounds__(THREADS)
adamw_tiles(const float* gradient, float* parameter, float* first, float* second, int N,
            float beta1, float beta2, float one_minus_beta1, float one_minus_beta2, float keep,
            float rate, float unbias1, float unbias2, float eps) {
    __shared__ __align__(16) float stages[2][4][SPAN];
    const float* const sources[4] = {gradient, parameter, first, second};
    const long long begin = static_cast<long long>(blockIdx.x) * SPAN * TILES;

    fetch(stages[0], sources, begin, N);
    asm volatile("cp.async.commit_group;" ::: "memory");

    for (int tile = 0; tile < TILES; ++tile) {
        const long long base = begin + static_cast<long long>(tile) * SPAN;
        if (tile + 1 < TILES) fetch(stages[(tile + 1) & 1], sources, base + SPAN, N);
        asm volatile("cp.async.commit_group;" ::: "memory");
        asm volatile("cp.async.wait_group 1;" ::: "memory");
        __syncthreads();   // the tile is there for all

        const float(*now)[SPAN] = stages[tile & 1];
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            const int e = j * THREADS + threadIdx.x;
            const long long i = base + e;
            if (i >= N) break;
            const float g = now[0][e], old = now[1][e];
            const float m = beta1 * now[2][e] + one_minus_beta1 * g;
            const float v = beta2 * now[3][e] + one_minus_beta2 * (g * g);
            const float m_hat = m * unbias1, v_hat = v * unbias2;
            first[i] = m;
            second[i] = v;
            parameter[i] = old * keep - rate * m_hat / (sqrtf(v_hat) + eps);
        }
        __syncthreads();   // before the tile is replaced
    }
}
