/* evoengine
name: embedding_bag_lane_teams
precision: fp32
summary: the rows of a bag are dealt to parts, warps and teams of lanes; the part that arrives last adds the parts
tunables:
  TEAM: [8, 16, 32]      # lanes that read a row together, four columns each
  WARPS: [4, 2, 8]
  PARTS: [2, 4, 1]       # blocks that share a bag
let:
  SLICES: "ceil_div(D, 4 * TEAM)"
require:
  - WARP_SIZE % TEAM == 0
scratch:
  partial: {dtype: float32, shape: [PARTS, BAGS, D]}
  arrived: {dtype: int32, shape: [BAGS, SLICES], init: 0}
launches:
  - kernel: embedding_bag_lane_teams
    grid: [BAGS, SLICES, PARTS]
    block: [WARP_SIZE, WARPS]
    args: [table, indices, offsets, out, partial, arrived, BAGS, "D // 4"]
*/

// A warp loads 32 indices at a time, one a lane, and its teams of lanes take their rows in turn.
// The sums of the teams meet by shuffles, those of the warps in shared memory, and those of the
// parts in global memory, always in the same order.

#define EVERY_LANE 0xffffffffu

__device__ __forceinline__ float4& operator+=(float4& a, const float4& b) {
    a.x += b.x;
    a.y += b.y;
    a.z += b.z;
    a.w += b.w;
    return a;
}

__device__ __forceinline__ float4 from_lane_xor(const float4& a, int mask) {
    return make_float4(__shfl_xor_sync(EVERY_LANE, a.x, mask), __shfl_xor_sync(EVERY_LANE, a.y, mask),
                       __shfl_xor_sync(EVERY_LANE, a.z, mask), __shfl_xor_sync(EVERY_LANE, a.w, mask));
}

extern "C" __global__ void __launch_bounds__(32 * WARPS)
embedding_bag_lane_teams(const float4* __restrict__ table, const int* __restrict__ indices,
                         const int* __restrict__ offsets, float4* __restrict__ out, float4* partial,
                         int* arrived, int bags, int quads) {
    constexpr int TEAMS = 32 / TEAM;
    __shared__ float4 warp_sums[WARPS][TEAM];
    __shared__ bool is_last;

    const int lane = threadIdx.x, warp = threadIdx.y;
    const int team = lane / TEAM, seat = lane % TEAM;
    const int bag = blockIdx.x, part = blockIdx.z;
    const int quad = blockIdx.y * TEAM + seat;
    const bool has_columns = quad < quads;

    const int begin = offsets[bag], end = offsets[bag + 1];
    const int share = (end - begin + PARTS - 1) / PARTS;
    const int from = min(begin + part * share, end), to = min(from + share, end);

    float4 sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    for (int base = from + 32 * warp; base < to; base += 32 * WARPS) {
        const int left = min(32, to - base);
        const int own = lane < left ? indices[base + lane] : 0;
        for (int k = 0; k < left; k += TEAMS) {
            const int row = __shfl_sync(EVERY_LANE, own, k + team);
            if (k + team < left && has_columns) sum += table[static_cast<size_t>(row) * quads + quad];
        }
    }

    // Lanes of the same seat hold the same columns.
#pragma unroll
    for (int mask = 16; mask >= TEAM; mask /= 2) sum += from_lane_xor(sum, mask);
    if (team == 0) warp_sums[warp][seat] = sum;
    __syncthreads();

    const bool is_writer = warp == 0 && team == 0 && has_columns;
    if (is_writer)
        for (int w = 1; w < WARPS; ++w) sum += warp_sums[w][seat];

    const size_t place = static_cast<size_t>(bag) * quads + quad;
    if (PARTS == 1) {
        if (is_writer) out[place] = sum;
        return;
    }

    const size_t stride = static_cast<size_t>(bags) * quads;
    if (is_writer) {
        partial[part * stride + place] = sum;
        __threadfence();
    }
    __syncthreads();   // the whole slice of this part is written before its arrival is counted
    if (warp == 0 && lane == 0) {
        const int before = atomicAdd(&arrived[bag * gridDim.y + blockIdx.y], 1);
        __threadfence();
        is_last = before == PARTS - 1;
    }
    __syncthreads();   // everyone knows whether this part is the last
    if (!is_last) return;

    if (is_writer) {
        float4 total = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        for (int p = 0; p < PARTS; ++p) total += __ldcg(&partial[p * stride + place]);
        out[place] = total;
    }
}
