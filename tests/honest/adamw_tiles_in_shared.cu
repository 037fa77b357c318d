/* evoengine
name: adamw_tiles_in_shared
precision: fp32
summary: persistent blocks copy tiles of all four tensors to shared memory with cp.async, two at a time
tunables:
  TILE: [1024, 512]
let:
  TILES: ceil_div(N, TILE)
launches:
  - kernel: step
    grid: ["min(TILES, 528)"]
    block: [TILE // 4]
    shared: 32 * TILE
    args: [gradient, parameter, first, second, N, TILES, beta1, beta2, {value: 1 - beta1, dtype: float32}, {value: 1 - beta2, dtype: float32}, {value: 1 - rate * decay, dtype: float32}, {value: rate / correction1, dtype: float32}, {value: 1 / correction2, dtype: float32}, eps]
*/

__device__ __forceinline__ void copy(float4* to, const float* from, int bytes) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"((unsigned)__cvta_generic_to_shared(to)), "l"(from), "r"(bytes) : "memory");
}

__device__ __forceinline__ void store(float* to, float4 four, int count) {
    if (count >= 4) *reinterpret_cast<float4*>(to) = four;
    else
        for (int i = 0; i < count; ++i) to[i] = reinterpret_cast<float*>(&four)[i];
}

__global__ void __launch_bounds__(TILE / 4)
step(const float* gradient, float* parameter, float* first, float* second, int N, int tiles, float beta1, float beta2,
     float new1, float new2, float keep, float rate, float scale, float eps) {
    extern __shared__ float4 tile[];   // [stage][tensor][thread]: every thread reads back what it has copied itself
    auto load = [&](int number, int stage) {
        const int at = number * TILE + threadIdx.x * 4, left = max(0, min(4, N - at));
        const float* from[4] = {gradient, parameter, first, second};
#pragma unroll
        for (int t = 0; t < 4; ++t) copy(&tile[(stage * 4 + t) * (TILE / 4) + threadIdx.x], from[t] + (left ? at : 0), 4 * left);
        asm volatile("cp.async.commit_group;" ::: "memory");
    };
    int stage = 0;
    load(blockIdx.x, 0);
    for (int number = blockIdx.x; number < tiles; number += gridDim.x, stage ^= 1) {
        if (number + gridDim.x < tiles) load(number + gridDim.x, stage ^ 1);
        else asm volatile("cp.async.commit_group;" ::: "memory");
        asm volatile("cp.async.wait_group 1;" ::: "memory");
        const float4* mine = &tile[stage * TILE + threadIdx.x];
        float4 g = mine[0], p = mine[TILE / 4], m = mine[2 * (TILE / 4)], v = mine[3 * (TILE / 4)];
        float *gs = &g.x, *ps = &p.x, *ms = &m.x, *vs = &v.x;
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            ms[j] = beta1 * ms[j] + new1 * gs[j];
            vs[j] = beta2 * vs[j] + new2 * (gs[j] * gs[j]);
            ps[j] = ps[j] * keep - rate * ms[j] / (sqrtf(vs[j] * scale) + eps);
        }
        const int at = number * TILE + threadIdx.x * 4;
        store(parameter + at, p, N - at);
        store(first + at, m, N - at);
        store(second + at, v, N - at);
    }
}
