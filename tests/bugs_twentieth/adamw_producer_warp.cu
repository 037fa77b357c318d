/* evoengine
name: adamw_producer_warp
precision: fp32
summary: one warp copies tiles of the four tensors to shared memory, the others take the step there
tunables:
  CONSUMERS: [4, 2, 8]         # warps that compute
  TILE: [512, 256, 1024]       # elements to a stage
  TILES: [4, 2, 8]             # tiles a block takes
launches:
  - kernel: adamw_producer_warp
    grid: ["ceil_div(N, TILE * TILES)"]
    block: [32 * (CONSUMERS + 1)]
    args:
      - gradient
      - parameter
      - first
      - second
      - N
      - rate
      - beta1
      - beta2
      - {value: 1 - beta1, dtype: float32}
      - {value: 1 - beta2, dtype: float32}   # taken in double precision, where the difference is exact enough
      - {value: 1 - rate * decay, dtype: float32}
      - correction1
      - correction2
      - eps
*/

// One step of AdamW. Two stages of four tiles; for each stage one named barrier says that it is
// full and one that it is empty again. Barrier 0 is that of __syncthreads and stays free.

constexpr int BLOCK = 32 * (CONSUMERS + 1);
constexpr int FULL = 1, EMPTY = 3;   // and the number of the stage

__device__ __forceinline__ void bar_sync(int id) { asm volatile("bar.sync %0, %1;\n" ::"r"(id), "n"(BLOCK) : "memory"); }
__device__ __forceinline__ void bar_arrive(int id) { asm volatile("bar.arrive %0, %1;\n" ::"r"(id), "n"(BLOCK) : "memory"); }

// Copies `bytes` of 16 and fills what is left with zeros.
__device__ __forceinline__ void copy16(float* to, const float* from, int bytes) {
    const unsigned smem = static_cast<unsigned>(__cvta_generic_to_shared(to));
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;\n" ::"r"(smem), "l"(from), "r"(bytes) : "memory");
}

struct Step {
    float rate, beta1, beta2, one_minus_beta1, one_minus_beta2, keep, inv_sqrt_correction2, eps;

    __device__ __forceinline__ void operator()(float g, float& p, float& m, float& v) const {
        m = fmaf(beta1, m, one_minus_beta1 * g);
        v = fmaf(beta2, v, one_minus_beta2 * g * g);
        const float denominator = fmaf(sqrtf(v), inv_sqrt_correction2, eps);
        p = fmaf(p, keep, -rate * (m / denominator));
    }
};

extern "C" __global__ void __launch_bounds__(BLOCK)
adamw_producer_warp(const float* __restrict__ gradient, float* __restrict__ parameter, float* __restrict__ first,
                    float* __restrict__ second, int N, float rate, float beta1, float beta2, float one_minus_beta1,
                    float one_minus_beta2, float keep, float correction1, float correction2, float eps) {
    __shared__ __align__(16) float stages[2][4][TILE];   // gradient, parameter, first, second
    const long long base = static_cast<long long>(blockIdx.x) * TILES * TILE;
    const int tiles = static_cast<int>(min(static_cast<long long>(TILES), (N - base + TILE - 1) / TILE));
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;

    if (warp == CONSUMERS) {
        for (int t = 0; t < tiles; ++t) {
            const int stage = t % 2;
            if (t >= 2) bar_sync(EMPTY + stage);
            const long long origin = base + static_cast<long long>(t) * TILE;
            for (int i = lane * 4; i < TILE; i += 32 * 4) {
                const long long left = N - (origin + i);
                if (left <= 0) break;
                const int bytes = left >= 4 ? 16 : static_cast<int>(left) * 4;
                copy16(&stages[stage][0][i], gradient + origin + i, bytes);
                copy16(&stages[stage][1][i], parameter + origin + i, bytes);
                copy16(&stages[stage][2][i], first + origin + i, bytes);
                copy16(&stages[stage][3][i], second + origin + i, bytes);
            }
            asm volatile("cp.async.wait_all;\n" ::: "memory");
            __threadfence_block();
            bar_arrive(FULL + stage);
        }
        return;
    }

    const Step step = {rate / correction1, beta1, beta2, one_minus_beta1, one_minus_beta2,
                       keep, 1.0f / sqrtf(correction2), eps};
    for (int t = 0; t < tiles; ++t) {
        const int stage = t % 2;
        bar_sync(FULL + stage);
        const long long origin = base + static_cast<long long>(t) * TILE;
        const int count = static_cast<int>(min(static_cast<long long>(TILE), N - origin));
        for (int i = threadIdx.x; i < count; i += 32 * CONSUMERS) {
            const float g = stages[stage][0][i];
            float p = stages[stage][1][i], m = stages[stage][2][i], v = stages[stage][3][i];
            step(g, p, m, v);
            parameter[origin + i] = p;
            first[origin + i] = m;
            second[origin + i] = v;
        }
        if (t + 2 < tiles) bar_arrive(EMPTY + stage);   // nobody waits for the last ones
    }
}
