/* evoengine
name: sextant_stream_warps
precision: fp32
summary: every warp copies one of the four streams asynchronously into a ring of tiles, all warps compute
tunables:
  STAGES: [3, 2, 4]
  TILES_PER_BLOCK: [4, 8, 16]
let:
  TILES: ceil_div(N, 512)
launches:
  - kernel: adamw_streams
    grid: ["ceil_div(TILES, TILES_PER_BLOCK)"]
    block: [128]
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

// AdamW with a multistage cp.async pipeline. There are as many warps as streams of input, so that warp 0
// fetches gradients, warp 1 parameters, warps 2 and 3 the moments; afterwards each thread updates four
// neighbouring elements of the tile, which other warps have brought.

namespace {

constexpr int kWarps = 4;
constexpr int kThreads = 32 * kWarps;
constexpr int kTile = 4 * kThreads;      // elements of one tile
constexpr int kQuads = kTile / 4;        // 16-byte pieces of one tile

enum Stream { kGrad = 0, kParam = 1, kMom1 = 2, kMom2 = 3 };

struct Hyper {
    float beta1, fresh1, beta2, fresh2;
    float keep;       // what weight decay leaves
    float lr;         // with the correction of the first moment
    float root;       // one over the root of the correction of the second moment
    float eps;
};

__device__ __forceinline__ void cp_async16(float* dst, const float* src, int bytes) {
    const unsigned where = static_cast<unsigned>(__cvta_generic_to_shared(dst));
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;\n" ::"r"(where), "l"(src), "r"(bytes) : "memory");
}

__device__ __forceinline__ void cp_commit() { asm volatile("cp.async.commit_group;\n" ::: "memory"); }

template <int kPending>
__device__ __forceinline__ void cp_wait() {
    asm volatile("cp.async.wait_group %0;\n" ::"n"(kPending) : "memory");
}

// Brings one tile of one stream; what lies behind the end of the tensors is filled with zeros.
__device__ __forceinline__ void fetch(float* slot, const float* stream, long long start, int N, int lane) {
#pragma unroll
    for (int q = lane; q < kQuads; q += 32) {
        const long long at = start + 4 * q;
        const long long rest = N - at;
        const int left = rest < 0 ? 0 : (rest > 4 ? 4 : static_cast<int>(rest));
        cp_async16(slot + 4 * q, stream + (left > 0 ? at : 0), left * 4);
    }
}

__device__ __forceinline__ void advance(float g, float& p, float& m, float& v, const Hyper& h) {
    const float m_new = h.beta1 * m + h.fresh1 * g;
    const float v_new = h.beta2 * v + h.fresh2 * g * g;
    const float denom = sqrtf(v_new) * h.root + h.eps;
    p = h.keep * p - (h.lr * m_new) / denom;
    m = m_new;
    v = v_new;
}

}  // namespace

extern "C" __global__ void __launch_bounds__(128)
adamw_streams(const float* gradient, float* parameter, float* first, float* second, int N, int tiles,
              float beta1, float fresh1, float beta2, float fresh2, float keep, float lr, float root, float eps) {
    __shared__ alignas(16) float ring[STAGES][kWarps][kTile];

    const Hyper hyper{beta1, fresh1, beta2, fresh2, keep, lr, root, eps};
    const int tid = threadIdx.x;
    const int warp = tid / 32;
    const int lane = tid % 32;
    const float* stream = warp == kGrad ? gradient : warp == kParam ? parameter : warp == kMom1 ? first : second;

    const int begin = blockIdx.x * TILES_PER_BLOCK;
    const int end = min(begin + TILES_PER_BLOCK, tiles);

    for (int s = 0; s < STAGES - 1; ++s) {
        if (begin + s < end) fetch(ring[s][warp], stream, static_cast<long long>(begin + s) * kTile, N, lane);
        cp_commit();
    }

    for (int tile = begin; tile < end; ++tile) {
        const int turn = tile - begin;
        cp_wait<STAGES - 2>();
        __syncthreads();   // the tile of all warps is here, and the oldest slot is free

        const int ahead = tile + STAGES - 1;
        if (ahead < end)
            fetch(ring[(turn + STAGES - 1) % STAGES][warp], stream, static_cast<long long>(ahead) * kTile, N, lane);
        cp_commit();

        float (*slot)[kTile] = ring[turn % STAGES];
        const float4 g = *reinterpret_cast<const float4*>(&slot[kGrad][4 * tid]);
        float4 p = *reinterpret_cast<const float4*>(&slot[kParam][4 * tid]);
        float4 m = *reinterpret_cast<const float4*>(&slot[kMom1][4 * tid]);
        float4 v = *reinterpret_cast<const float4*>(&slot[kMom2][4 * tid]);
        advance(g.x, p.x, m.x, v.x, hyper);
        advance(g.y, p.y, m.y, v.y, hyper);
        advance(g.z, p.z, m.z, v.z, hyper);
        advance(g.w, p.w, m.w, v.w, hyper);

        const long long at = static_cast<long long>(tile) * kTile + 4 * tid;
        if (at + 4 <= N) {
            *reinterpret_cast<float4*>(parameter + at) = p;
            *reinterpret_cast<float4*>(first + at) = m;
            *reinterpret_cast<float4*>(second + at) = v;
        } else if (at < N) {
            const float ps[4] = {p.x, p.y, p.z, p.w};
            const float ms[4] = {m.x, m.y, m.z, m.w};
            const float vs[4] = {v.x, v.y, v.z, v.w};
            for (int e = 0; e < 4 && at + e < N; ++e) {
                parameter[at + e] = ps[e];
                first[at + e] = ms[e];
                second[at + e] = vs[e];
            }
        }
    }
}
