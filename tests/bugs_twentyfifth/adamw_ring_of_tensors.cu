/* evoengine
name: adamw_ring_of_tensors
precision: fp32
summary: every warp of a block fetches one of the four tensors with cp.async into a ring of tiles
tunables:
  TILE_PACKS: [64, 128]        # vectors of four floats in a tile of one tensor
  STAGES: [3, 2, 4]            # tiles in the ring
  TILES: [6, 4, 12]            # tiles that a block takes one after the other
launches:
  - kernel: adamw_ring
    grid: ["ceil_div(N, 4 * TILE_PACKS * TILES)"]
    block: [128]
    shared: 16 * STAGES * 4 * TILE_PACKS
    args:
      - gradient
      - parameter
      - first
      - second
      - N
      - {value: 1 - beta1, dtype: float32}
      - {value: 1 - beta2, dtype: float32}
      - {value: rate / correction1, dtype: float32}
      - {value: 1 / sqrt(correction2), dtype: float32}
      - {value: rate * decay, dtype: float32}
      - eps
*/

// Four warps, four tensors: warp w copies tile after tile of tensor w, so the addresses of a warp are
// consecutive and the copies need no registers. All threads then do the arithmetic of a tile.

enum Tensor { GRAD, PARAM, MOMENT1, MOMENT2, TENSORS };

struct Hyper {
    float fresh1, fresh2;   // the weights of the new gradient and of its square
    float stepSize;         // rate / correction1
    float rootScale;        // 1 / sqrt(correction2)
    float shrink;           // rate * decay
    float eps;
};

// Copies 16 bytes; those beyond `bytes` become zeros and are not read.
__device__ __forceinline__ void copyAsync(float4* to, const float* from, int bytes) {
    const unsigned target = static_cast<unsigned>(__cvta_generic_to_shared(to));
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;\n" ::"r"(target), "l"(from), "r"(bytes) : "memory");
}

__device__ __forceinline__ void commitGroup() { asm volatile("cp.async.commit_group;\n" ::: "memory"); }

template <int Pending> __device__ __forceinline__ void waitGroups() {
    asm volatile("cp.async.wait_group %0;\n" ::"n"(Pending) : "memory");
}

__device__ __forceinline__ void adamStep(float g, float& p, float& m, float& v, const Hyper& h) {
    m = fmaf(h.fresh1, g - m, m);
    v = fmaf(h.fresh2, g * g - v, v);
    const float size = sqrtf(v) * h.rootScale + h.eps;
    p = fmaf(-h.shrink, p, p) - h.stepSize * m / size;
}

extern "C" __global__ void __launch_bounds__(128)
adamw_ring(const float* __restrict__ gradient, float* __restrict__ parameter, float* __restrict__ first,
           float* __restrict__ second, int N, float fresh1, float fresh2, float stepSize, float rootScale,
           float shrink, float eps) {
    extern __shared__ float4 ring[];   // [STAGES][TENSORS][TILE_PACKS]
    const Hyper hyper = {fresh1, fresh2, stepSize, rootScale, shrink, eps};
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const long long blockStart = static_cast<long long>(blockIdx.x) * TILES * TILE_PACKS * 4;
    const float* sources[TENSORS] = {gradient, parameter, first, second};
    const float* source = sources[warp];

    // A tile behind the last one copies nothing, but its group is committed all the same: the
    // number of groups that a thread may leave pending counts on it.
    auto fetch = [&](int tile) {
        if (tile < TILES) {
            float4* slot = ring + ((tile % STAGES) * TENSORS + warp) * TILE_PACKS;
            for (int pack = lane; pack < TILE_PACKS; pack += 32) {
                const long long at = blockStart + (static_cast<long long>(tile) * TILE_PACKS + pack) * 4;
                if (at < N) {
                    const int bytes = static_cast<int>(min(static_cast<long long>(N) - at, 4LL)) * 4;
                    copyAsync(slot + pack, source + at, bytes);
                }
            }
        }
        commitGroup();
    };

#pragma unroll
    for (int tile = 0; tile < STAGES - 1; ++tile) fetch(tile);

    for (int tile = 0; tile < TILES; ++tile) {
        waitGroups<STAGES - 2>();
        __syncthreads();   // the warps have each other's copies, and the oldest slot is free
        fetch(tile + STAGES - 1);

        const float4* slot = ring + (tile % STAGES) * TENSORS * TILE_PACKS;
        for (int pack = threadIdx.x; pack < TILE_PACKS; pack += blockDim.x) {
            const long long at = blockStart + (static_cast<long long>(tile) * TILE_PACKS + pack) * 4;
            if (at >= N) break;
            const float4 g = slot[GRAD * TILE_PACKS + pack];
            float4 p = slot[PARAM * TILE_PACKS + pack];
            float4 m = slot[MOMENT1 * TILE_PACKS + pack];
            float4 v = slot[MOMENT2 * TILE_PACKS + pack];
            adamStep(g.x, p.x, m.x, v.x, hyper);
            adamStep(g.y, p.y, m.y, v.y, hyper);
            adamStep(g.z, p.z, m.z, v.z, hyper);
            adamStep(g.w, p.w, m.w, v.w, hyper);
            if (at + 4 <= N) {
                *reinterpret_cast<float4*>(parameter + at) = p;
                *reinterpret_cast<float4*>(first + at) = m;
                *reinterpret_cast<float4*>(second + at) = v;
            } else {   // one to three floats are left behind the last whole vector
                const float ps[3] = {p.x, p.y, p.z}, ms[3] = {m.x, m.y, m.z}, vs[3] = {v.x, v.y, v.z};
#pragma unroll
                for (int j = 0; j < 3; ++j) {
                    if (at + j < N) parameter[at + j] = ps[j], first[at + j] = ms[j], second[at + j] = vs[j];
                }
            }
        }
    }
}
