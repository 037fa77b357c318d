/* evoengine
name: adamw_private_ring
precision: fp32
summary: blocks walk over tiles; each thread keeps its own ring of asynchronous copies ahead of its arithmetic
tunables:
  BLOCK: [128, 256]
  DEPTH: [3, 2, 4]             # tiles of a thread in shared memory
  BLOCKS_PER_SM: [4, 8]
let:
  TILES: ceil_div(N, 4 * BLOCK)
require:
  - 64 * DEPTH * BLOCK <= MAX_SHARED_BYTES
launches:
  - kernel: adamwRing
    grid: ["min(ceil_div(TILES, 4), BLOCKS_PER_SM * SM_COUNT)"]
    block: [BLOCK]
    shared: 64 * DEPTH * BLOCK
    args:
      - gradient
      - parameter
      - first
      - second
      - N
      - TILES
      - beta1
      - {value: 1 - beta1, dtype: float32}
      - beta2
      - {value: 1 - beta2, dtype: float32}
      - {value: 1 - rate * decay, dtype: float32}
      - {value: rate / correction1, dtype: float32}
      - {value: 1 / sqrt(correction2), dtype: float32}
      - eps
*/

// AdamW with four streams in flight. A thread waits only for what it has asked for itself, so that
// the block never meets at a barrier. The copies fill up what lies beyond the end with zeros.

enum Stream { Gradient, Parameter, First, Second, Streams };

struct Hyper {
    float beta1, fresh1, beta2, fresh2, keep, stepSize, rootScale, eps;
};

__device__ __forceinline__ void copyAsync(float4* to, const float* from, int bytes) {
    const unsigned at = static_cast<unsigned>(__cvta_generic_to_shared(to));
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                 :: "r"(at), "l"(from), "r"(bytes) : "memory");
}

__device__ __forceinline__ void closeGroup() {
    asm volatile("cp.async.commit_group;" ::: "memory");
}

template <int Pending>
__device__ __forceinline__ void waitUntilPending() {
    asm volatile("cp.async.wait_group %0;" :: "n"(Pending) : "memory");
}

__device__ __forceinline__ void update(float g, float& p, float& m, float& v, const Hyper& h) {
    const float mNew = fmaf(h.beta1, m, h.fresh1 * g);
    const float vNew = fmaf(h.beta2, v, h.fresh2 * g * g);
    const float size = fmaf(sqrtf(vNew), h.rootScale, h.eps);
    p = fmaf(p, h.keep, -(h.stepSize * mNew) / size);
    m = mNew;
    v = vNew;
}

// All four floats where they exist, else the first `count` of them one by one.
__device__ __forceinline__ void store(float* to, const float4& four, int count) {
    if (count >= 4) {
        *reinterpret_cast<float4*>(to) = four;
        return;
    }
    if (count > 0) to[0] = four.x;
    if (count > 1) to[1] = four.y;
    if (count > 2) to[2] = four.z;
}

extern "C" __global__ void __launch_bounds__(BLOCK)
adamwRing(const float* gradient, float* parameter, float* first, float* second, int N, int tiles,
          float beta1, float fresh1, float beta2, float fresh2, float keep, float stepSize,
          float rootScale, float eps) {
    extern __shared__ float4 ring[];   // [DEPTH][Streams][BLOCK]
    const Hyper hyper = {beta1, fresh1, beta2, fresh2, keep, stepSize, rootScale, eps};
    const float* source[Streams] = {gradient, parameter, first, second};
    const int hop = gridDim.x;

    auto offsetIn = [&](int tile) { return (static_cast<long long>(tile) * BLOCK + threadIdx.x) * 4; };
    auto cell = [&](int slot, int stream) -> float4& {
        return ring[(slot * Streams + stream) * BLOCK + threadIdx.x];
    };
    auto request = [&](int tile, int slot) {
        const long long begin = offsetIn(tile), left = N - begin;
        if (tile < tiles && left > 0) {
            const int bytes = static_cast<int>(sizeof(float)) * (left < 4 ? static_cast<int>(left) : 4);
#pragma unroll
            for (int s = 0; s < Streams; ++s) copyAsync(&cell(slot, s), source[s] + begin, bytes);
        }
        closeGroup();   // an empty one counts, too: the waits below count rounds
    };

#pragma unroll
    for (int ahead = 0; ahead < DEPTH - 1; ++ahead) request(blockIdx.x + ahead * hop, ahead);

    int slot = 0;
    for (int tile = blockIdx.x; tile < tiles; tile += hop) {
        request(tile + (DEPTH - 1) * hop, (slot + DEPTH - 1) % DEPTH);
        waitUntilPending<DEPTH - 1>();
        const long long begin = offsetIn(tile);
        if (begin < N) {
            const float4 g = cell(slot, Gradient);
            float4 p = cell(slot, Parameter), m = cell(slot, First), v = cell(slot, Second);
            update(g.x, p.x, m.x, v.x, hyper);
            update(g.y, p.y, m.y, v.y, hyper);
            update(g.z, p.z, m.z, v.z, hyper);
            update(g.w, p.w, m.w, v.w, hyper);
            const int count = N - begin < 4 ? static_cast<int>(N - begin) : 4;
            store(parameter + begin, p, count);
            store(first + begin, m, count);
            store(second + begin, v, count);
        }
        slot = slot + 1 == DEPTH ? 0 : slot + 1;
    }
}
