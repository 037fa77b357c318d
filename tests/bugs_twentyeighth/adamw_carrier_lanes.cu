/* evoengine
name: adamw_carrier_lanes
precision: fp32
summary: a ring of tiles in shared memory; every warp copies one of the four tensors, all compute
tunables:
  TILE: [512, 1024, 256]       # elements of a tile
  DEPTH: [3, 2, 4]             # tiles in shared memory at once
  CHAIN: [4, 8, 16]            # tiles a block takes one after the other
  WARPS: [4, 8]
let:
  TILES: N // TILE             # whole ones; the rest is done without copies
  BLOCKS: max(1, ceil_div(TILES, CHAIN))
require:
  - WARPS % 4 == 0
  - TILE % (128 * WARPS) == 0
  - 16 * TILE * DEPTH <= MAX_SHARED_BYTES
launches:
  - kernel: adamw_carried
    grid: [BLOCKS]
    block: [32 * WARPS]
    shared: 16 * TILE * DEPTH
    args:
      - gradient
      - parameter
      - first
      - second
      - N
      - TILES
      - {value: 1 - beta1, dtype: float32}
      - beta2
      - {value: 1 - beta2, dtype: float32}
      - {value: 1 - rate * decay, dtype: float32}
      - {value: rate / correction1, dtype: float32}
      - {value: 1 / sqrt(correction2), dtype: float32}
      - eps
*/

// One step of AdamW. A block walks over tiles that lie a whole grid apart. While it computes on one of
// them, the copies of the next DEPTH - 1 are under way; results go from registers straight to memory.

#define LANES 32
#define THREADS (LANES * WARPS)
#define HELPERS (WARPS / 4)   // warps that copy the same tensor

typedef unsigned int u32;

enum tensor { GRAD, PAR, MOM, VAR, TENSORS };

struct hyper { float a1, b2, a2, keep, lr, inv_root, eps; };

__device__ __forceinline__ void copy16(float* dst, const float* src) {
    const u32 to = static_cast<u32>(__cvta_generic_to_shared(dst));
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" :: "r"(to), "l"(src) : "memory");
}
__device__ __forceinline__ void seal() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int PENDING> __device__ __forceinline__ void drain() {
    asm volatile("cp.async.wait_group %0;" :: "n"(PENDING) : "memory");
}

__device__ __forceinline__ void adam(float g, float& p, float& m, float& v, const hyper& h) {
    m = fmaf(h.a1, g - m, m);
    v = h.b2 * v + h.a2 * g * g;
    p = p * h.keep - h.lr * m / (sqrtf(v) * h.inv_root + h.eps);
}

__device__ __forceinline__ float4& quad(float* at) { return *reinterpret_cast<float4*>(at); }

extern "C" __global__ void __launch_bounds__(THREADS)
adamw_carried(const float* grad, float* par, float* mom, float* var, int n, int tiles, float a1, float b2,
              float a2, float keep, float lr, float inv_root, float eps) {
    extern __shared__ __align__(16) float ring[];   // [DEPTH][TENSORS][TILE]
    const hyper h = {a1, b2, a2, keep, lr, inv_root, eps};
    const int tid = threadIdx.x, warp = tid / LANES, lane = tid % LANES;
    const int bid = blockIdx.x, blocks = gridDim.x;
    const int mine = tiles > bid ? (tiles - 1 - bid) / blocks + 1 : 0;

    // What this warp carries.
    const int cargo = warp % TENSORS, part = warp / TENSORS;
    const float* source = cargo == GRAD ? grad : cargo == PAR ? par : cargo == MOM ? mom : var;

    auto fetch = [&](int k) {
        if (k < mine) {
            const float* from = source + static_cast<size_t>(bid + k * blocks) * TILE;
            float* to = ring + ((k % DEPTH) * TENSORS + cargo) * TILE;
            for (int i = (part * LANES + lane) * 4; i < TILE; i += HELPERS * LANES * 4) copy16(to + i, from + i);
        }
        seal();   // an empty group too, so that the number of groups tells which tile has come
    };

    for (int k = 0; k < DEPTH - 1; ++k) fetch(k);

    for (int k = 0; k < mine; ++k) {
        drain<DEPTH - 2>();
        __syncthreads();   // tile k is there for all, and nobody reads tile k - 1 any more
        fetch(k + DEPTH - 1);

        const size_t base = static_cast<size_t>(bid + k * blocks) * TILE;
        float* tile = ring + (k % DEPTH) * TENSORS * TILE;
        for (int i = tid * 4; i < TILE; i += THREADS * 4) {
            const float4 g = quad(tile + GRAD * TILE + i);
            float4 p = quad(tile + PAR * TILE + i);
            float4 m = quad(tile + MOM * TILE + i);
            float4 v = quad(tile + VAR * TILE + i);
            adam(g.x, p.x, m.x, v.x, h);
            adam(g.y, p.y, m.y, v.y, h);
            adam(g.z, p.z, m.z, v.z, h);
            adam(g.w, p.w, m.w, v.w, h);
            quad(par + base + i) = p;
            quad(mom + base + i) = m;
            quad(var + base + i) = v;
        }
    }

    // Less than a tile is left, an element a thread.
    for (int i = tiles * TILE + bid * THREADS + tid; i < n; i += blocks * THREADS)
        adam(grad[i], par[i], mom[i], var[i], h);
}
