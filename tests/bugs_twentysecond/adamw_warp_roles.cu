/* evoengine
name: adamw_warp_roles
precision: fp32
summary: persistent blocks; one warp copies tiles into a ring in shared memory, the others update them
tunables:
  CONSUMERS: [128, 256, 64]    # threads that compute, four elements of a tile each
  DEPTH: [3, 2, 4]             # tiles in the ring
let:
  TILES: "ceil_div(N, 4 * CONSUMERS)"
require:
  - 64 * CONSUMERS * DEPTH <= MAX_SHARED_BYTES
launches:
  - kernel: adamw_ring
    grid: ["min(ceil_div(TILES, 4), 2 * SM_COUNT)"]   # a shorter walk would not fill the ring
    block: ["CONSUMERS + WARP_SIZE"]
    shared: 64 * CONSUMERS * DEPTH
    args:
      - gradient
      - parameter
      - first
      - second
      - N
      - TILES
      - {value: 1 - beta1, dtype: float32}
      - {value: 1 - beta2, dtype: float32}
      - {value: 1 - rate * decay, dtype: float32}
      - {value: rate / correction1, dtype: float32}
      - {value: 1 / sqrt(correction2), dtype: float32}
      - eps
*/

// The last warp of a block is its loader. A slot of the ring has two named barriers: `filled` lets
// the other warps read it, `drained` lets the loader write it again. Both count all threads of the
// block, because one side arrives and the other one waits.

constexpr int kTile = 4 * CONSUMERS;
constexpr int kEveryone = CONSUMERS + 32;
constexpr int kTensors = 4;   // of a slot: gradient, parameter, first, second

struct Rates { float fresh1, fresh2, keep, stride, unbias, eps; };

__device__ __forceinline__ int filled(int slot) { return 1 + slot; }
__device__ __forceinline__ int drained(int slot) { return 1 + DEPTH + slot; }

__device__ __forceinline__ void bar_wait(int id) {
    asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(kEveryone) : "memory");
}

__device__ __forceinline__ void bar_signal(int id) {
    asm volatile("bar.arrive %0, %1;" ::"r"(id), "r"(kEveryone) : "memory");
}

// Copies `bytes` of the 16, and zeros for the others.
__device__ __forceinline__ void copy16(float* to, const float* from, int bytes) {
    const unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(to));
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(address), "l"(from), "r"(bytes) : "memory");
}

template <int Pending> __device__ __forceinline__ void copies_left() {
    asm volatile("cp.async.wait_group %0;" ::"n"(Pending) : "memory");
}

__device__ void load_tiles(const float* const (&tensors)[kTensors], float* ring, int n, int my_tiles) {
    const int lane = threadIdx.x % 32;
    for (int k = 0; k < my_tiles + DEPTH - 1; ++k) {
        if (k < my_tiles) {
            const int slot = k % DEPTH;
            const int origin = (blockIdx.x + k * gridDim.x) * kTile;
            if (k >= DEPTH) bar_wait(drained(slot));
#pragma unroll
            for (int t = 0; t < kTensors; ++t) {
                float* target = ring + (slot * kTensors + t) * kTile;
                for (int i = 4 * lane; i < kTile; i += 128) {
                    const int at = origin + i;
                    const int bytes = max(0, min(16, 4 * (n - at)));
                    copy16(target + i, tensors[t] + (at < n ? at : 0), bytes);
                }
            }
        }
        asm volatile("cp.async.commit_group;" ::: "memory");   // empty behind the last tile, so that the count holds
        if (k >= DEPTH - 1) {
            copies_left<DEPTH - 1>();
            bar_signal(filled((k - (DEPTH - 1)) % DEPTH));
        }
    }
}

__device__ __forceinline__ void advance(float grad, float& theta, float& mom, float& var, const Rates& r) {
    mom += (grad - mom) * r.fresh1;
    var = fmaf(r.fresh2, grad * grad - var, var);
    const float denom = sqrtf(var) * r.unbias + r.eps;
    theta = theta * r.keep - r.stride * (mom / denom);
}

extern "C" __global__ void __launch_bounds__(CONSUMERS + 32)
adamw_ring(const float* gradient, float* parameter, float* first, float* second, int n, int tiles,
           float fresh1, float fresh2, float keep, float stride, float unbias, float eps) {
    extern __shared__ __align__(16) float ring[];
    const int my_tiles = (tiles - 1 - static_cast<int>(blockIdx.x)) / static_cast<int>(gridDim.x) + 1;

    if (threadIdx.x >= CONSUMERS) {
        const float* const tensors[kTensors] = {gradient, parameter, first, second};
        load_tiles(tensors, ring, n, my_tiles);
        return;
    }

    const Rates rates = {fresh1, fresh2, keep, stride, unbias, eps};
    for (int k = 0; k < my_tiles; ++k) {
        const int slot = k % DEPTH;
        const float4* mine = reinterpret_cast<const float4*>(ring + slot * kTensors * kTile) + threadIdx.x;
        bar_wait(filled(slot));
        const float4 g = mine[0];
        float4 p = mine[CONSUMERS], m = mine[2 * CONSUMERS], v = mine[3 * CONSUMERS];
        if (k + DEPTH < my_tiles) bar_signal(drained(slot));   // nobody waits for the last ones

        advance(g.x, p.x, m.x, v.x, rates);
        advance(g.y, p.y, m.y, v.y, rates);
        advance(g.z, p.z, m.z, v.z, rates);
        advance(g.w, p.w, m.w, v.w, rates);

        const int at = (blockIdx.x + k * gridDim.x) * kTile + 4 * threadIdx.x;
        if (at + 4 <= n) {
            *reinterpret_cast<float4*>(parameter + at) = p;
            *reinterpret_cast<float4*>(first + at) = m;
            *reinterpret_cast<float4*>(second + at) = v;
        } else {
            const float ps[3] = {p.x, p.y, p.z}, ms[3] = {m.x, m.y, m.z}, vs[3] = {v.x, v.y, v.z};
#pragma unroll
            for (int j = 0; j < 3; ++j)
                if (at + j < n) parameter[at + j] = ps[j], first[at + j] = ms[j], second[at + j] = vs[j];
        }
    }
}
