/* evoengine
name: embedding_bag_lane_groups
precision: fp32
summary: a warp a bag; its lanes load 32 indices at once and split into groups that take rows in turn
tunables:
  WARPS: [4, 8, 2]             # bags to a block
let:
  COLS: D // 4
  LANES: 8 if COLS <= 8 else (16 if COLS <= 16 else 32)   # lanes to a row
launches:
  - kernel: bag_sums<LANES>
    grid: ["ceil_div(BAGS, WARPS)"]
    block: [32 * WARPS]
    args: [table, indices, offsets, out, BAGS, COLS]
*/

// out[b] = the sum of the rows table[indices[i]] with offsets[b] <= i < offsets[b + 1]. A row of few
// columns leaves lanes over: then each group of LANES lanes adds every GROUPS-th row of the bag, and
// the groups' sums are added by shuffles at the end.

#define ALL_LANES 0xffffffffu

struct Acc {
    float4 v;

    __device__ __forceinline__ void clear() { v = make_float4(0.f, 0.f, 0.f, 0.f); }

    __device__ __forceinline__ void add(const float4& o) {
        v.x += o.x;
        v.y += o.y;
        v.z += o.z;
        v.w += o.w;
    }

    // Adds what the lane has whose number differs in the bit of `mask`.
    __device__ __forceinline__ void add_partner(int mask) {
        float4 o;
        o.x = __shfl_xor_sync(ALL_LANES, v.x, mask);
        o.y = __shfl_xor_sync(ALL_LANES, v.y, mask);
        o.z = __shfl_xor_sync(ALL_LANES, v.z, mask);
        o.w = __shfl_xor_sync(ALL_LANES, v.w, mask);
        add(o);
    }
};

template <int LANES>
__global__ void __launch_bounds__(32 * WARPS)
bag_sums(const float4* __restrict__ table, const int* __restrict__ indices, const int* __restrict__ offsets,
         float4* __restrict__ out, int n_bags, int n_cols) {
    constexpr int GROUPS = 32 / LANES;
    const int lane = threadIdx.x & 31;
    const int bag = blockIdx.x * WARPS + (threadIdx.x >> 5);
    if (bag >= n_bags) return;   // the whole warp, so no shuffle misses a lane

    const int group = lane / LANES;
    const int member = lane % LANES;
    const int lo = __ldg(offsets + bag), hi = __ldg(offsets + bag + 1);

    for (int col0 = 0; col0 < n_cols; col0 += LANES) {
        const int col = col0 + member;
        const bool live = col < n_cols;
        Acc total;
        total.clear();

        for (int first = lo; first < hi; first += 32) {
            const int n = min(32, hi - first);
            const int my_index = lane < n ? __ldg(indices + first + lane) : 0;

            // A sum of its own for these rows keeps long bags accurate.
            Acc part;
            part.clear();
#pragma unroll 4
            for (int k = 0; k < n; k += GROUPS) {
                const int pick = k + group;
                const int index = __shfl_sync(ALL_LANES, my_index, pick & 31);
                if (pick < n && live) part.add(__ldg(table + (size_t)index * n_cols + col));
            }
            total.add(part.v);
        }

#pragma unroll
        for (int mask = LANES; mask < 32; mask <<= 1) total.add_partner(mask);
        if (group == 0 && live) out[(size_t)bag * n_cols + col] = total.v;
    }
}
