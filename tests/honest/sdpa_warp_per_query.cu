/* evoengine
name: sdpa_warp_per_query
precision: fp16
summary: one warp a query, the head split over the lanes, a butterfly for every score, online softmax
tunables:
  WARPS: [4, 8, 2]
launches:
  - kernel: attention<D, causal>
    grid: ["ceil_div(S, WARPS)", "B * H"]
    block: ["32 * WARPS"]
    args: [q, k, v, out, S, scale]
*/
#include <cuda_fp16.h>

template <int PAIRS> struct Slice {
    float2 at[PAIRS];
    __device__ __forceinline__ void load(const __half2* row, int lane) {
#pragma unroll
        for (int i = 0; i < PAIRS; ++i) at[i] = __half22float2(__ldg(row + i * 32 + lane));
    }
};

template <int D, bool CAUSAL>
__global__ void __launch_bounds__(32 * WARPS)
attention(const __half* __restrict__ q, const __half* __restrict__ k, const __half* __restrict__ v, __half* __restrict__ out, int S, float scale) {
    constexpr int PAIRS = D / 64;
    const int lane = threadIdx.x % 32, row = blockIdx.x * WARPS + threadIdx.x / 32;
    if (row >= S) return;
    const size_t head = size_t(blockIdx.y) * S * (D / 2);
    const __half2* keys = reinterpret_cast<const __half2*>(k) + head;
    const __half2* values = reinterpret_cast<const __half2*>(v) + head;
    Slice<PAIRS> mine, other, acc{};
    mine.load(reinterpret_cast<const __half2*>(q) + head + size_t(row) * (D / 2), lane);
    float top = -INFINITY, total = 0.0f;
    for (int j = 0; j < (CAUSAL ? row + 1 : S); ++j) {
        other.load(keys + size_t(j) * (D / 2), lane);
        float s = 0.0f;
#pragma unroll
        for (int i = 0; i < PAIRS; ++i) s += mine.at[i].x * other.at[i].x + mine.at[i].y * other.at[i].y;
#pragma unroll
        for (int o = 16; o > 0; o /= 2) s += __shfl_xor_sync(0xffffffffu, s, o);
        s *= scale;
        const float next = fmaxf(top, s), keep = __expf(top - next), p = __expf(s - next);
        total = total * keep + p;
        other.load(values + size_t(j) * (D / 2), lane);
#pragma unroll
        for (int i = 0; i < PAIRS; ++i) acc.at[i].x = acc.at[i].x * keep + p * other.at[i].x, acc.at[i].y = acc.at[i].y * keep + p * other.at[i].y;
        top = next;
    }
#pragma unroll
    for (int i = 0; i < PAIRS; ++i)
        reinterpret_cast<__half2*>(out)[head + size_t(row) * (D / 2) + i * 32 + lane] = __floats2half2_rn(acc.at[i].x / total, acc.at[i].y / total);
}
