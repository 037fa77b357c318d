/* evoengine
name: adamw_staged_tiles
precision: fp32
summary: tiles of 512 numbers of all four tensors are copied into one half of shared memory while the other half is used
let:
  TILES: ceil_div(N, 512)
launches:
  - kernel: adamw
    grid: ["min(TILES, 8 * SM_COUNT if N >= 1048576 else 3)"]
    block: [128]
    args: [gradient, parameter, first, second, N, TILES, beta1, beta2, {value: 1 - beta1, dtype: float32}, {value: 1 - beta2, dtype: float32}, {value: 1 - rate * decay, dtype: float32}, {value: rate / correction1, dtype: float32}, {value: 1 / sqrt(correction2), dtype: float32}, eps]
*/

constexpr int TILE = 512, THREADS = 128;

__device__ __forceinline__ void copy(float* to, const float* from) {
    const unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(to));
    asm volatile("cp.async.ca.shared.global [%0], [%1], 16;" ::"r"(address), "l"(from) : "memory");
}

extern "C" __global__ void __launch_bounds__(THREADS)
adamw(const float* __restrict__ gradient, float* __restrict__ parameter, float* __restrict__ first,
      float* __restrict__ second, int N, int tiles, float beta1, float beta2, float new1, float new2, float keep,
      float rate, float scale, float eps) {
    __shared__ __align__(16) float staged[2][4][TILE];
    const int at = threadIdx.x * 4;   // of this thread in every tile, so that it waits for no other

    auto stage = [&](int half, int tile) {
        const int from = tile * TILE + at;
        if (from + 4 <= N) {
            copy(&staged[half][0][at], gradient + from);
            copy(&staged[half][1][at], parameter + from);
            copy(&staged[half][2][at], first + from);
            copy(&staged[half][3][at], second + from);
        } else {
            for (int e = 0; from + e < N; ++e) {
                staged[half][0][at + e] = gradient[from + e];
                staged[half][1][at + e] = parameter[from + e];
                staged[half][2][at + e] = first[from + e];
                staged[half][3][at + e] = second[from + e];
            }
        }
        asm volatile("cp.async.commit_group;" ::: "memory");
    };

    int half = 0;
    stage(0, blockIdx.x);
    for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        const int next = tile + gridDim.x;
        if (next < tiles) {
            stage(half ^ 1, next);
            asm volatile("cp.async.wait_group 1;" ::: "memory");
        } else {
            asm volatile("cp.async.wait_group 0;" ::: "memory");
        }
        for (int e = 0; e < 4; ++e) {
            const int i = tile * TILE + at + e;
            if (i >= N) break;
            const float g = staged[half][0][at + e];
            const float m = beta1 * staged[half][2][at + e] + new1 * g;
            const float v = beta2 * staged[half][3][at + e] + new2 * g * g;
            parameter[i] = keep * staged[half][1][at + e] - rate * m / (sqrtf(v) * scale + eps);
            first[i] = m;
            second[i] = v;
        }
        half ^= 1;
    }
}
