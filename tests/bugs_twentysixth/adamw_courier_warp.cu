/* evoengine
name: adamw_courier_warp
precision: fp32
summary: persistent blocks; a courier warp copies tiles of all four tensors to a ring of stages, the workers update them
tunables:
  TILE: [512, 1024, 256]       # floats of each tensor in a stage
  STAGES: [3, 2, 4]
  WORKERS: [64, 128, 256]      # threads that compute
let:
  TILES: ceil_div(N, TILE)
require:
  - WORKERS % WARP_SIZE == 0
  - 16 * STAGES * TILE <= MAX_SHARED_BYTES
launches:
  - kernel: adamw_courier_warp
    grid: ["max(1, min(2 * SM_COUNT, TILES // 4))"]
    block: ["WORKERS + WARP_SIZE"]
    shared: 16 * STAGES * TILE
    args:
      - gradient
      - parameter
      - first
      - second
      - N
      - {value: 1 - beta1, dtype: float32}
      - {value: 1 - beta2, dtype: float32}
      - {value: 1 - rate * decay, dtype: float32}
      - {value: rate / correction1, dtype: float32}
      - {value: 1 / sqrt(correction2), dtype: float32}
      - eps
*/

// One step of AdamW. A stage of the ring holds one tile of the gradient, the parameter and both moments,
// one behind the other. The courier copies whole vectors only; what is left of the last tile the workers
// read from global memory themselves.

enum { FULL = 1, VACANT = FULL + STAGES };   // named barriers, one of each for a stage; 0 is __syncthreads

__device__ __forceinline__ void meetAt(int barrier) {
    asm volatile("bar.sync %0, %1;" ::"r"(barrier), "n"(WORKERS + 32) : "memory");
}

__device__ __forceinline__ void reportTo(int barrier) {
    asm volatile("bar.arrive %0, %1;" ::"r"(barrier), "n"(WORKERS + 32) : "memory");
}

__device__ __forceinline__ void copyVector(float* target, const float* source) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(
                     static_cast<unsigned>(__cvta_generic_to_shared(target))),
                 "l"(source)
                 : "memory");
}

__device__ __forceinline__ void closeGroup() { asm volatile("cp.async.commit_group;" ::: "memory"); }

// All groups of copies but the `pending` youngest have arrived.
template <int pending> __device__ __forceinline__ void awaitCopies() {
    asm volatile("cp.async.wait_group %0;" ::"n"(pending) : "memory");
}

struct Step {
    float fresh1, fresh2, keep, rate, rootScale, eps;

    __device__ __forceinline__ void operator()(float g, float& p, float& m, float& v) const {
        m = fmaf(fresh1, g - m, m);
        v = fmaf(fresh2, fmaf(g, g, -v), v);
        p = fmaf(p, keep, -rate * (m / fmaf(sqrtf(v), rootScale, eps)));
    }
};

__device__ __forceinline__ void runCourier(float* ring, const float* gradient, const float* parameter,
                                           const float* first, const float* second, int N, int tiles) {
    const int lane = threadIdx.x - WORKERS;
    int turn = 0;
    for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x, ++turn) {
        const int stage = turn % STAGES, start = tile * TILE;
        const int body = min(TILE, N - start) & ~3;
        float* slot = ring + stage * 4 * TILE;
        if (turn >= STAGES) meetAt(VACANT + stage);   // nobody has used a stage before its first turn
        for (int i = 4 * lane; i < body; i += 4 * 32) {
            copyVector(slot + i, gradient + start + i);
            copyVector(slot + TILE + i, parameter + start + i);
            copyVector(slot + 2 * TILE + i, first + start + i);
            copyVector(slot + 3 * TILE + i, second + start + i);
        }
        closeGroup();
        if (turn > 0) {   // the copies of this turn stay in flight while those of the last one are handed over
            awaitCopies<1>();
            reportTo(FULL + (turn - 1) % STAGES);
        }
    }
    awaitCopies<0>();
    reportTo(FULL + (turn - 1) % STAGES);
}

extern "C" __global__ void __launch_bounds__(WORKERS + 32)
adamw_courier_warp(const float* __restrict__ gradient, float* parameter, float* first, float* second, int N,
                   float fresh1, float fresh2, float keep, float rate, float rootScale, float eps) {
    extern __shared__ __align__(16) float ring[];
    const Step step = {fresh1, fresh2, keep, rate, rootScale, eps};
    const int tiles = (N + TILE - 1) / TILE;

    if (threadIdx.x >= WORKERS) {
        runCourier(ring, gradient, parameter, first, second, N, tiles);
        return;
    }

    for (int tile = blockIdx.x, turn = 0; tile < tiles; tile += gridDim.x, ++turn) {
        const int stage = turn % STAGES, start = tile * TILE;
        const int count = min(TILE, N - start), body = count & ~3;
        const float4* slot = reinterpret_cast<const float4*>(ring + stage * 4 * TILE);
        meetAt(FULL + stage);
        for (int q = threadIdx.x; q < body / 4; q += WORKERS) {
            const float4 g = slot[q];
            float4 p = slot[q + TILE / 4], m = slot[q + TILE / 2], v = slot[q + 3 * TILE / 4];
            step(g.x, p.x, m.x, v.x);
            step(g.y, p.y, m.y, v.y);
            step(g.z, p.z, m.z, v.z);
            step(g.w, p.w, m.w, v.w);
            reinterpret_cast<float4*>(parameter + start)[q] = p;
            reinterpret_cast<float4*>(first + start)[q] = m;
            reinterpret_cast<float4*>(second + start)[q] = v;
        }
        // The courier waits only for stages that it fills again.
        if (tile + static_cast<long long>(STAGES) * gridDim.x < tiles) reportTo(VACANT + stage);

        if (threadIdx.x < count - body) {
            const int at = start + body + threadIdx.x;
            step(gradient[at], parameter[at], first[at], second[at]);
        }
    }
}
