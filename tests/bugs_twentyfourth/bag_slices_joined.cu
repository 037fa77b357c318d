/* evoengine
name: bag_slices_joined
precision: fp32
summary: every warp sums an equal slice of the indices; bags that cross slices are joined by a second launch
tunables:
  SLICE: [16, 32, 8]           # indices of a warp, at most one a lane
  WARPS: [4, 2, 8]
let:
  SLICES: ceil_div(T, SLICE)
  QUADS: D // 4
require:
  - SLICE <= WARP_SIZE
scratch:
  edge: {dtype: float32, shape: [SLICES, 2, D]}
launches:
  - kernel: slice_sums
    grid: ["ceil_div(SLICES, WARPS)", "ceil_div(QUADS, WARP_SIZE)"]
    block: [WARP_SIZE, WARPS]
    args: [table, indices, offsets, edge, out, T, BAGS, QUADS]
  - kernel: join_edges
    grid: ["ceil_div(BAGS, WARPS)", "ceil_div(QUADS, WARP_SIZE)"]
    block: [WARP_SIZE, WARPS]
    args: [edge, offsets, out, BAGS, QUADS]
*/

// Work is dealt out by indices, not by bags, so one long bag does not hold up a warp for long.
// A bag inside of a slice is stored at once. Of a bag that crosses slices, each leaves its part in
// edge[slice][0] if the bag began in an earlier slice, in edge[slice][1] if it began in this one.

#define FULL 0xffffffffu
#define ZERO4 make_float4(0.f, 0.f, 0.f, 0.f)

typedef unsigned long long u64;

static __device__ __forceinline__ u64 at(int row, int quads, int q) {
    return (u64)row * quads + q;
}

static __device__ __forceinline__ void add4(float4 *a, float4 b) {
    a->x += b.x;
    a->y += b.y;
    a->z += b.z;
    a->w += b.w;
}

/* The last bag that begins at i or before: the one that holds index i, as later ones begin behind
   it and empty ones that begin at the same place come before it. */
static __device__ __forceinline__ int bag_of(const int *offsets, int bags, int i) {
    int lo = 0, hi = bags;
    while (hi - lo > 1) {
        int mid = (lo + hi) >> 1;
        if (offsets[mid] <= i) lo = mid;
        else hi = mid;
    }
    return lo;
}

extern "C" __global__ void __launch_bounds__(32 * WARPS)
slice_sums(const float4 *__restrict__ table, const int *__restrict__ indices,
           const int *__restrict__ offsets, float4 *__restrict__ edge, float4 *__restrict__ out,
           int T, int bags, int quads) {
    const int lane = threadIdx.x;
    const int slice = blockIdx.x * WARPS + threadIdx.y;
    const int q = blockIdx.y * 32 + lane;
    const int from = slice * SLICE;
    if (from >= T) return;
    const int to = min(from + SLICE, T);

    /* one load of the indices for the warp; lanes without a column hold some of them as well */
    const int mine = lane < to - from ? indices[from + lane] : 0;
    int bag = bag_of(offsets, bags, from);
    int i = from;
    float4 acc = ZERO4;
    while (i < to) {
        const int start = offsets[bag], stop = offsets[bag + 1];
        const int until = min(stop, to);
#pragma unroll 4
        for (; i < until; ++i) {
            const int row = __shfl_sync(FULL, mine, i - from);
            if (q < quads) add4(&acc, table[at(row, quads, q)]);
        }
        if (q < quads && stop > start) {
            const int begins_here = start >= from;
            if (begins_here && stop <= to) out[at(bag, quads, q)] = acc;
            else edge[at(2 * slice + begins_here, quads, q)] = acc;
        }
        acc = ZERO4;
        ++bag;
    }
}

extern "C" __global__ void __launch_bounds__(32 * WARPS)
join_edges(const float4 *__restrict__ edge, const int *__restrict__ offsets,
           float4 *__restrict__ out, int bags, int quads) {
    const int bag = blockIdx.x * WARPS + threadIdx.y;
    const int q = blockIdx.y * 32 + threadIdx.x;
    if (bag >= bags || q >= quads) return;
    const int start = offsets[bag], stop = offsets[bag + 1];
    if (start == stop) {
        out[at(bag, quads, q)] = ZERO4;   /* nobody has met an empty bag */
        return;
    }
    const int head = start / SLICE, tail = (stop - 1) / SLICE;
    if (head == tail) return;             /* stored by its slice */
    float4 acc = edge[at(2 * head + 1, quads, q)];
    for (int s = head + 1; s <= tail; ++s) add4(&acc, edge[at(2 * s, quads, q)]);
    out[at(bag, quads, q)] = acc;
}
