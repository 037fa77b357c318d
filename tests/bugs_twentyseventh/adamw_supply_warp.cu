/* evoengine
name: adamw_supply_warp
precision: fp32
summary: one warp copies tiles ahead into a ring, the others update and store from registers; named barriers
tunables:
  WORKERS: [128, 256]    # threads that compute
  TILE: [512, 1024]      # floats of each tensor in a stage
  STAGES: [2, 3]
  TILES: [4, 8]          # tiles a block streams, one after the other
require:
  - TILE % (4 * WARP_SIZE) == 0
launches:
  - kernel: adamw_supply_warp
    grid: ["ceil_div(N, TILE * TILES)"]
    block: ["WORKERS + WARP_SIZE"]
    shared: 4 * 4 * TILE * STAGES
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
      - {value: rate / correction1, dtype: float32}
      - {value: 1 / sqrt(correction2), dtype: float32}
      - eps
*/

// One step of AdamW on a stream of tiles. Stage s of the ring holds four slabs of TILE floats:
// gradient, parameter, first moment, second moment. Barrier FULL + s says that it has arrived,
// EMPTY + s that it has been read. The copies move 16 bytes, so the last N % 4 elements are not in
// the ring: the workers of the last block take them from memory.

constexpr int FULL = 1, EMPTY = FULL + STAGES;   // barrier 0 is that of __syncthreads
constexpr int EVERYONE = WORKERS + 32;

__device__ __forceinline__ void meet(int id) {
    asm volatile("bar.sync %0, %1;" ::"r"(id), "n"(EVERYONE) : "memory");
}

__device__ __forceinline__ void tell(int id) {   // arrives without waiting for the others
    asm volatile("bar.arrive %0, %1;" ::"r"(id), "n"(EVERYONE) : "memory");
}

__device__ __forceinline__ void copy16(float4* to, const float* from) {
    const unsigned dst = static_cast<unsigned>(__cvta_generic_to_shared(to));
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(dst), "l"(from) : "memory");
}

template <int LEFT> __device__ __forceinline__ void copies_left() {
    asm volatile("cp.async.wait_group %0;" ::"n"(LEFT) : "memory");
}

struct Hyper { float b1, b2, n1, n2, keep, lr, inv_c2, eps; };

__device__ __forceinline__ void adam(float g, float& p, float& m, float& v, const Hyper& h) {
    m = fmaf(h.b1, m, h.n1 * g);
    v = fmaf(h.b2, v, (h.n2 * g) * g);
    const float denom = fmaf(sqrtf(v), h.inv_c2, h.eps);   // sqrt(v / correction2) + eps
    p = fmaf(p, h.keep, -(h.lr * m) / denom);
}

extern "C" __global__ void __launch_bounds__(EVERYONE)
adamw_supply_warp(const float* __restrict__ gradient, float* parameter, float* first, float* second, int N,
                    float b1, float b2, float n1, float n2, float keep, float lr, float inv_c2, float eps) {
    extern __shared__ __align__(16) float4 ring[];   // [STAGES][4][TILE / 4]
    constexpr int SLAB = TILE / 4;
    const Hyper h = {b1, b2, n1, n2, keep, lr, inv_c2, eps};
    const int tid = threadIdx.x;
    const long long base = static_cast<long long>(blockIdx.x) * TILES * TILE;
    const long long whole = N & ~3;   // what the ring moves
    const long long mine = min(static_cast<long long>(TILES) * TILE, whole - base);
    const int tiles = mine > 0 ? static_cast<int>((mine + TILE - 1) / TILE) : 0;

    if (tid >= WORKERS) {
        const int lane = tid - WORKERS;
        for (int t = 0; t < tiles; ++t) {
            const int s = t % STAGES, packs = static_cast<int>(min(static_cast<long long>(TILE), mine - t * TILE)) / 4;
            const long long at = base + t * TILE;
            float4* slab = ring + s * 4 * SLAB;
            if (t >= STAGES) meet(EMPTY + s);
            for (int i = lane; i < packs; i += 32) {
                copy16(slab + i, gradient + at + 4 * i);
                copy16(slab + SLAB + i, parameter + at + 4 * i);
                copy16(slab + 2 * SLAB + i, first + at + 4 * i);
                copy16(slab + 3 * SLAB + i, second + at + 4 * i);
            }
            asm volatile("cp.async.commit_group;" ::: "memory");
            if (t > 0) {   // the tile before this one has arrived
                copies_left<1>();
                tell(FULL + (t - 1) % STAGES);
            }
        }
        copies_left<0>();
        if (tiles > 0) tell(FULL + (tiles - 1) % STAGES);
        return;
    }

    for (int t = 0; t < tiles; ++t) {
        const int s = t % STAGES, packs = static_cast<int>(min(static_cast<long long>(TILE), mine - t * TILE)) / 4;
        const long long at = base + t * TILE;
        const float4* slab = ring + s * 4 * SLAB;
        meet(FULL + s);
        for (int i = tid; i < packs; i += WORKERS) {
            const float4 g = slab[i];
            float4 p = slab[SLAB + i], m = slab[2 * SLAB + i], v = slab[3 * SLAB + i];
            adam(g.x, p.x, m.x, v.x, h);
            adam(g.y, p.y, m.y, v.y, h);
            adam(g.z, p.z, m.z, v.z, h);
            adam(g.w, p.w, m.w, v.w, h);
            reinterpret_cast<float4*>(parameter + at)[i] = p;
            reinterpret_cast<float4*>(first + at)[i] = m;
            reinterpret_cast<float4*>(second + at)[i] = v;
        }
        if (t + STAGES < tiles) tell(EMPTY + s);   // who waits for it: the copies of tile t + STAGES
    }

    if (blockIdx.x == gridDim.x - 1 && tid < N - whole) {
        const long long i = whole + tid;
        adam(gradient[i], parameter[i], first[i], second[i], h);
    }
}
