/* evoengine
name: adamw_handover
precision: fp32
summary: upstream warps own the moments and hand the size of every step over, slot by slot behind named barriers, to a downstream warp that owns the parameter
tunables:
  UPSTREAM: [3, 2, 4]          # warps that update moments; they move five tensors' worth, the other one two
  DEPTH: [2, 1, 3]             # strips of one of them that may wait for the downstream warp
  DEAL: [16, 32]               # strips of a block at least
let:
  STRIPS: ceil_div(N, 128)
  CREWS: min(ceil_div(STRIPS, DEAL), 8 * SM_COUNT)
  SPAN: ceil_div(STRIPS, CREWS)
require:
  - 2 * UPSTREAM * DEPTH <= 15   # named barriers, beside that of __syncthreads
launches:
  - kernel: adamw_handover
    grid: ["ceil_div(STRIPS, SPAN)"]
    block: ["WARP_SIZE * (UPSTREAM + 1)"]
    args:
      - gradient
      - parameter
      - first
      - second
      - N
      - STRIPS
      - SPAN
      - beta1
      - {value: 1 - beta1, dtype: float32}
      - beta2
      - {value: 1 - beta2, dtype: float32}
      - {value: 1 / sqrt(correction2), dtype: float32}
      - eps
      - {value: rate / correction1, dtype: float32}
      - {value: 1 - rate * decay, dtype: float32}
*/

// AdamW falls apart into two halves that have only one number per element in common:
//
//      upstream      (g, m, v)  ->  m', v', ratio = m' / (sqrt(v' / c2) + eps)
//      downstream    (p, ratio) ->  p'  =  p * keep - rate * ratio
//
// Each half keeps its loads in flight whatever the other one waits for. A strip is 128 elements, a
// float4 a lane. Strip k of a block is made by upstream warp k % UPSTREAM and lies in slot k % kSlots;
// as kSlots is a multiple of UPSTREAM, a slot has one writer for good. It has two named barriers, where
// that warp and the downstream warp meet, one of which only arrives:
//
//      filled(slot)   upstream arrives when it has written, downstream waits
//      vacant(slot)   downstream arrives when it has read, upstream waits before it writes again

namespace {

constexpr int kStrip = 128;
constexpr int kLanes = 32;
constexpr int kSlots = UPSTREAM * DEPTH;
constexpr int kBoth = 2 * kLanes;        // threads that a barrier counts

__device__ __forceinline__ int filled(int slot) { return 1 + slot; }
__device__ __forceinline__ int vacant(int slot) { return 1 + kSlots + slot; }

__device__ __forceinline__ void arrive_at(int barrier) {
    asm volatile("bar.arrive %0, %1;" ::"r"(barrier), "n"(kBoth) : "memory");
}

__device__ __forceinline__ void wait_at(int barrier) {
    asm volatile("bar.sync %0, %1;" ::"r"(barrier), "n"(kBoth) : "memory");
}

struct Momenta { float beta1, fresh1, beta2, fresh2, unbias, eps; };

__device__ __forceinline__ float4 fetch(const float* __restrict__ from, int at, int n) {
    if (at + 4 <= n) return *reinterpret_cast<const float4*>(from + at);
    float4 some = make_float4(0.f, 0.f, 0.f, 0.f);
    if (at < n) some.x = from[at];
    if (at + 1 < n) some.y = from[at + 1];
    if (at + 2 < n) some.z = from[at + 2];
    return some;
}

__device__ __forceinline__ void put(float* __restrict__ to, int at, int n, const float4& what) {
    if (at + 4 <= n) {
        *reinterpret_cast<float4*>(to + at) = what;
        return;
    }
    if (at < n) to[at] = what.x;
    if (at + 1 < n) to[at + 1] = what.y;
    if (at + 2 < n) to[at + 2] = what.z;
}

__device__ __forceinline__ float blend(float g, float& m, float& v, const Momenta& k) {
    m = fmaf(k.beta1, m, k.fresh1 * g);
    v = fmaf(k.beta2, v, k.fresh2 * g * g);
    const float size = fmaf(sqrtf(v), k.unbias, k.eps);
    return m / size;
}

__device__ void upstream(float4 (*ratios)[kLanes], const float* gradient, float* first, float* second, int n,
                         int origin, int strips, int warp, int lane, const Momenta& k) {
    for (int strip = warp; strip < strips; strip += UPSTREAM) {
        const int slot = strip % kSlots;
        const int at = origin + strip * kStrip + 4 * lane;

        const float4 g = fetch(gradient, at, n);
        float4 m = fetch(first, at, n), v = fetch(second, at, n);
        float4 ratio;
        ratio.x = blend(g.x, m.x, v.x, k);
        ratio.y = blend(g.y, m.y, v.y, k);
        ratio.z = blend(g.z, m.z, v.z, k);
        ratio.w = blend(g.w, m.w, v.w, k);

        if (strip >= kSlots) wait_at(vacant(slot));      // what was there has been read
        ratios[slot][lane] = ratio;
        arrive_at(filled(slot));

        put(first, at, n, m);
        put(second, at, n, v);
    }
}

__device__ void downstream(float4 (*ratios)[kLanes], float* parameter, int n, int origin, int strips, int lane,
                           float rate, float keep) {
    float4 p = fetch(parameter, origin + 4 * lane, n);
    for (int strip = 0; strip < strips; ++strip) {
        const int slot = strip % kSlots;
        const int at = origin + strip * kStrip + 4 * lane;
        // The next strip's parameters are on their way while this one's ratios are waited for.
        const float4 ahead = strip + 1 < strips ? fetch(parameter, at + kStrip, n) : p;

        wait_at(filled(slot));
        const float4 ratio = ratios[slot][lane];
        if (strip + kSlots < strips) arrive_at(vacant(slot));   // nobody waits for the last ones

        p.x = fmaf(p.x, keep, -rate * ratio.x);
        p.y = fmaf(p.y, keep, -rate * ratio.y);
        p.z = fmaf(p.z, keep, -rate * ratio.z);
        p.w = fmaf(p.w, keep, -rate * ratio.w);
        put(parameter, at, n, p);
        p = ahead;
    }
}

}  // namespace

extern "C" __global__ void __launch_bounds__(32 * (UPSTREAM + 1))
adamw_handover(const float* __restrict__ gradient, float* __restrict__ parameter, float* __restrict__ first,
               float* __restrict__ second, int n, int all_strips, int span, float beta1, float fresh1,
               float beta2, float fresh2, float unbias, float eps, float rate, float keep) {
    __shared__ float4 ratios[kSlots][kLanes];
    const int warp = threadIdx.x / kLanes, lane = threadIdx.x % kLanes;
    const int begin = blockIdx.x * span;
    const int strips = min(span, all_strips - begin);
    if (warp < UPSTREAM) {
        const Momenta k = {beta1, fresh1, beta2, fresh2, unbias, eps};
        upstream(ratios, gradient, first, second, n, begin * kStrip, strips, warp, lane, k);
    } else {
        downstream(ratios, parameter, n, begin * kStrip, strips, lane, rate, keep);
    }
}
