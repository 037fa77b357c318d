/* evoengine
name: adamw_maple_tickets
precision: fp32
summary: warps draw chunks from a counter and stream them through rings of their own, DEPTH chunks deep
tunables:
  BLOCK: [128, 64, 256]
  QUADS: [2, 1, 4]      # float4 of each tensor that a lane takes of a chunk
  DEPTH: [3, 2, 4]
let:
  CHUNKS: ceil_div(N, 128 * QUADS)
  SHARE: BLOCK // 32 * 3                 # chunks that are worth a block
  RINGS: BLOCK * DEPTH * 4 * QUADS * 16
require:
  - RINGS <= MAX_SHARED_BYTES
scratch:
  counter: {dtype: int32, shape: [1], init: 0}
launches:
  - kernel: adamw_tickets<QUADS>
    grid: ["min(ceil_div(CHUNKS, SHARE), 4 * SM_COUNT)"]
    block: [BLOCK]
    shared: RINGS
    args:
      - gradient
      - parameter
      - first
      - second
      - counter
      - N
      - CHUNKS
      - beta1
      - {value: 1 - beta1, dtype: float32}
      - beta2
      - {value: 1 - beta2, dtype: float32}
      - {value: 1 - rate * decay, dtype: float32}
      - {value: rate / correction1, dtype: float32}
      - {value: 1 / correction2, dtype: float32}
      - eps
*/

namespace maple {

enum Tensor { kGradient, kParameter, kFirst, kSecond, kTensors };

struct Rule {
    float b1, n1, b2, n2, shrink, pace, unbias, eps;

    __device__ __forceinline__ void operator()(float g, float& p, float& m, float& v) const {
        m = fmaf(b1, m, n1 * g);
        v = fmaf(b2, v, n2 * g * g);
        const float size = sqrtf(v * unbias) + eps;
        p = p * shrink - pace * m / size;
    }

    __device__ __forceinline__ void operator()(const float4& g, float4& p, float4& m, float4& v) const {
        (*this)(g.x, p.x, m.x, v.x);
        (*this)(g.y, p.y, m.y, v.y);
        (*this)(g.z, p.z, m.z, v.z);
        (*this)(g.w, p.w, m.w, v.w);
    }
};

// The next ticket, for the whole warp.
__device__ __forceinline__ int draw(int* counter) {
    int ticket = 0;
    if ((threadIdx.x & 31) == 0) ticket = atomicAdd(counter, 1);
    return __shfl_sync(0xffffffffu, ticket, 0);
}

__device__ __forceinline__ void stream16(float4* to, const float4* from) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;\n"
                 :: "r"(static_cast<unsigned>(__cvta_generic_to_shared(to))), "l"(from) : "memory");
}

}  // namespace maple

template <int Q>
__global__ void __launch_bounds__(BLOCK)
adamw_tickets(const float* __restrict__ gradient, float* parameter, float* first, float* second, int* counter,
              int N, int chunks, float b1, float n1, float b2, float n2, float shrink, float pace, float unbias, float eps) {
    using namespace maple;
    constexpr int kQuads = 32 * Q;          // of a chunk, per tensor
    constexpr int kChunk = 4 * kQuads;      // floats
    extern __shared__ __align__(16) float4 rings[];
    const Rule rule = {b1, n1, b2, n2, shrink, pace, unbias, eps};
    const int lane = threadIdx.x & 31;
    float4* ring = rings + (threadIdx.x >> 5) * (DEPTH * kTensors * kQuads);
    const int whole = N / kChunk;           // chunks without an end in them

    // A lane copies just what it will compute on, so a warp never waits for its lanes.
    auto request = [&](int slot, int ticket) {
        if (ticket < whole) {
            float4* to = ring + slot * (kTensors * kQuads) + lane;
            const size_t from = size_t(ticket) * kQuads + lane;
#pragma unroll
            for (int q = 0; q < Q; ++q) {
                stream16(to + kGradient * kQuads + q * 32, reinterpret_cast<const float4*>(gradient) + from + q * 32);
                stream16(to + kParameter * kQuads + q * 32, reinterpret_cast<const float4*>(parameter) + from + q * 32);
                stream16(to + kFirst * kQuads + q * 32, reinterpret_cast<const float4*>(first) + from + q * 32);
                stream16(to + kSecond * kQuads + q * 32, reinterpret_cast<const float4*>(second) + from + q * 32);
            }
        }
        asm volatile("cp.async.commit_group;\n" ::: "memory");
    };

    int tickets[DEPTH];
#pragma unroll
    for (int s = 0; s < DEPTH - 1; ++s) {
        tickets[s] = draw(counter);
        request(s, tickets[s]);
    }
    for (int slot = 0;; slot = (slot + 1) % DEPTH) {
        const int last = (slot + DEPTH - 1) % DEPTH;
        tickets[last] = draw(counter);
        request(last, tickets[last]);
        asm volatile("cp.async.wait_group %0;\n" ::"n"(DEPTH - 1) : "memory");
        const int ticket = tickets[slot];
        if (ticket >= chunks) break;        // tickets only grow: nothing is left in the ring

        if (ticket < whole) {
            const float4* from = ring + slot * (kTensors * kQuads) + lane;
            const size_t to = size_t(ticket) * kQuads + lane;
#pragma unroll
            for (int q = 0; q < Q; ++q) {
                const float4 g = from[kGradient * kQuads + q * 32];
                float4 p = from[kParameter * kQuads + q * 32];
                float4 m = from[kFirst * kQuads + q * 32];
                float4 v = from[kSecond * kQuads + q * 32];
                rule(g, p, m, v);
                __stcs(reinterpret_cast<float4*>(parameter) + to + q * 32, p);
                __stcs(reinterpret_cast<float4*>(first) + to + q * 32, m);
                __stcs(reinterpret_cast<float4*>(second) + to + q * 32, v);
            }
        } else {
            for (int at = ticket * kChunk + lane; at < N; at += 32) {
                float p = parameter[at], m = first[at], v = second[at];
                rule(gradient[at], p, m, v);
                parameter[at] = p;
                first[at] = m;
                second[at] = v;
            }
        }
    }
    asm volatile("cp.async.wait_all;\n" ::: "memory");
}
