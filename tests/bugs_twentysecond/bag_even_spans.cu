/* evoengine
name: bag_even_spans
precision: fp32
summary: indices are split evenly among warps whatever the bags; sums of bags that cross a split are added atomically
tunables:
  WARPS: [4, 8, 2]
  SPAN: [16, 32, 8]      # consecutive indices of a warp
  CLEARERS: [256, 128]
let:
  COLS: D // 4
launches:
  - kernel: clear_out
    grid: ["ceil_div(BAGS * COLS, CLEARERS)"]
    block: [CLEARERS]
    args: [out, BAGS * COLS]
  - kernel: sum_spans
    grid: ["ceil_div(T, WARPS * SPAN)", "ceil_div(COLS, 32)"]
    block: [32, WARPS]
    args: [table, indices, offsets, out, T, BAGS, COLS]
*/

// A long bag is shared by many warps and a warp may see many short bags, so the work of a warp does
// not depend on how the bags are drawn. Empty bags have no index and stay as clear_out leaves them.

constexpr int CHUNK = WARPS * SPAN;   // indices of a block

__device__ __forceinline__ void accumulate(float4& acc, const float4& v) {
    acc.x += v.x; acc.y += v.y; acc.z += v.z; acc.w += v.w;
}

// The bag of position pos: the last one whose offset is not beyond it.
__device__ __forceinline__ int bag_at(const int* __restrict__ offsets, int bags, int pos) {
    int lo = 0, hi = bags;   // offsets[lo] <= pos < offsets[hi]
    while (hi - lo > 1) {
        const int mid = (lo + hi) >> 1;
        if (__ldg(offsets + mid) <= pos) lo = mid;
        else hi = mid;
    }
    return lo;
}

extern "C" __global__ void __launch_bounds__(CLEARERS)
clear_out(float4* __restrict__ out, int count) {
    const int i = blockIdx.x * CLEARERS + threadIdx.x;
    if (i < count) out[i] = make_float4(0.f, 0.f, 0.f, 0.f);
}

extern "C" __global__ void __launch_bounds__(32 * WARPS)
sum_spans(const float4* __restrict__ table, const int* __restrict__ indices,
          const int* __restrict__ offsets, float4* __restrict__ out, int T, int BAGS, int cols) {
    __shared__ int rowIdx[CHUNK];
    __shared__ int bagIdx[CHUNK];

    const int lane = threadIdx.x, warp = threadIdx.y;
    const int base = blockIdx.x * CHUNK;
    for (int i = warp * 32 + lane; i < CHUNK; i += 32 * WARPS) {
        const int pos = base + i;
        if (pos < T) {
            rowIdx[i] = indices[pos];
            bagIdx[i] = bag_at(offsets, BAGS, pos);
        }
    }
    __syncthreads();   // a span is staged by threads of other warps as well

    const int begin = warp * SPAN;
    const int end = min(begin + SPAN, T - base);
    const int col = blockIdx.y * 32 + lane;
    if (begin >= end || col >= cols) return;

    // A bag that lies in this span as a whole has no other writer.
    auto flush = [&](int bag, const float4& acc) {
        float4* dst = out + static_cast<size_t>(bag) * cols + col;
        const bool whole = offsets[bag] >= base + begin && offsets[bag + 1] <= base + end;
        if (whole) {
            *dst = acc;
        } else {
            atomicAdd(&dst->x, acc.x);
            atomicAdd(&dst->y, acc.y);
            atomicAdd(&dst->z, acc.z);
            atomicAdd(&dst->w, acc.w);
        }
    };
    auto fetch = [&](int i) { return __ldg(table + static_cast<size_t>(rowIdx[i]) * cols + col); };

    float4 acc = make_float4(0.f, 0.f, 0.f, 0.f);
    float4 ahead = fetch(begin);
    int open = bagIdx[begin];
    for (int i = begin; i < end; ++i) {
        const float4 row = ahead;
        if (i + 1 < end) ahead = fetch(i + 1);   // in flight while this row is added
        const int bag = bagIdx[i];
        if (bag != open) {
            flush(open, acc);
            acc = make_float4(0.f, 0.f, 0.f, 0.f);
            open = bag;
        }
        accumulate(acc, row);
    }
    flush(open, acc);
}
