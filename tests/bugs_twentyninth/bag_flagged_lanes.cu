/* evoengine
name: bag_flagged_lanes
precision: fp32
summary: a lane a token; rows are summed by a segmented scan over the lanes, four columns at a time
tunables:
  NWARPS: [4, 8, 2]
  NBATCH: [2, 4, 1]            # batches of 32 tokens of a warp
  NQUADS: [8, 4, 16]           # float4 columns of a block
let:
  QUADS: D // 4
launches:
  - kernel: clear_out
    grid: ["ceil_div(BAGS * QUADS, 128)"]
    block: [128]
    args: [out, BAGS * QUADS]
  - kernel: scan_tokens
    grid: ["ceil_div(T, 32 * NBATCH * NWARPS)", "ceil_div(QUADS, NQUADS)"]
    block: [32, NWARPS]
    args: [table, indices, offsets, out, T, BAGS, QUADS]
*/

/*
 * The tokens of a bag are neighbours, so a warp that takes 32 tokens in a row sees whole bags and
 * at most two that are cut. With one token in each lane
 *
 *      lane     0  1  2  3  4  5  6  ...
 *      bag      7  7  7  9  9 12 12  ...
 *      head     1  0  0  1  0  1  0  ...     first lane of a bag in this batch
 *      behind   0  1  2  0  1  0  1  ...     lanes of the same bag below this one
 *
 * an inclusive scan that never reaches below the head leaves the sum of a bag in its last lane.
 * That lane stores it if the batch has the whole bag; cut bags meet in out by atomics.
 */

#define ALL_LANES 0xffffffffu

static __device__ __forceinline__ unsigned lanes_up_to_me()
{
    unsigned mask;
    asm("mov.u32 %0, %%lanemask_le;" : "=r"(mask));
    return mask;
}

static __device__ __forceinline__ void red_add4(float *to, float4 v)
{
    asm volatile("red.global.add.f32 [%0], %1;" :: "l"(to + 0), "f"(v.x) : "memory");
    asm volatile("red.global.add.f32 [%0], %1;" :: "l"(to + 1), "f"(v.y) : "memory");
    asm volatile("red.global.add.f32 [%0], %1;" :: "l"(to + 2), "f"(v.z) : "memory");
    asm volatile("red.global.add.f32 [%0], %1;" :: "l"(to + 3), "f"(v.w) : "memory");
}

/* the bag of a token: the last one whose offset is not above it, which skips empty bags */
static __device__ int bag_of(const int *__restrict__ offsets, int bags, int token)
{
    int lo = 0, hi = bags;
    while (hi - lo > 1) {
        const int mid = (lo + hi) >> 1;
        if (offsets[mid] <= token)
            lo = mid;
        else
            hi = mid;
    }
    return lo;
}

static __device__ __forceinline__ float4 segment_scan(float4 v, int behind)
{
#pragma unroll
    for (int reach = 1; reach < 32; reach *= 2) {
        const float x = __shfl_up_sync(ALL_LANES, v.x, reach);
        const float y = __shfl_up_sync(ALL_LANES, v.y, reach);
        const float z = __shfl_up_sync(ALL_LANES, v.z, reach);
        const float w = __shfl_up_sync(ALL_LANES, v.w, reach);
        if (reach <= behind) {
            v.x += x;
            v.y += y;
            v.z += z;
            v.w += w;
        }
    }
    return v;
}

extern "C" __global__ void __launch_bounds__(128)
clear_out(float4 *__restrict__ out, int quads)
{
    const int i = blockIdx.x * 128 + threadIdx.x;
    if (i < quads)
        out[i] = make_float4(0.f, 0.f, 0.f, 0.f);
}

extern "C" __global__ void __launch_bounds__(32 * NWARPS)
scan_tokens(const float4 *__restrict__ table, const int *__restrict__ indices,
            const int *__restrict__ offsets, float4 *__restrict__ out, int T, int BAGS, int QUADS)
{
    const int lane = threadIdx.x;
    const int warp = blockIdx.x * NWARPS + threadIdx.y;
    const int quad0 = blockIdx.y * NQUADS;
    const int quad1 = min(QUADS, quad0 + NQUADS);

    for (int batch = 0; batch < NBATCH; ++batch) {
        const int start = (warp * NBATCH + batch) * 32;
        if (start >= T)
            break;                                  /* the whole warp */

        const int token = start + lane;
        const bool live = token < T;
        const int bag = live ? bag_of(offsets, BAGS, token) : BAGS;
        const int row = live ? indices[token] : 0;

        /* heads of bags; the lanes beyond T are a bag of their own that is never stored */
        const int below = __shfl_up_sync(ALL_LANES, bag, 1);
        const unsigned heads = __ballot_sync(ALL_LANES, lane == 0 || bag != below);
        const int head = 31 - __clz(heads & lanes_up_to_me());
        const int behind = lane - head;

        /* the last lane of a bag has its sum */
        const bool last = lane == 31 || ((heads >> (lane + 1)) & 1u) != 0;
        const bool sums = live && last;
        const bool whole = sums && offsets[bag] >= start && offsets[bag + 1] <= start + 32;

        for (int quad = quad0; quad < quad1; ++quad) {
            float4 v = make_float4(0.f, 0.f, 0.f, 0.f);
            if (live)
                v = table[(size_t)row * QUADS + quad];
            v = segment_scan(v, behind);

            if (sums) {
                float4 *const to = out + (size_t)bag * QUADS + quad;
                if (whole)
                    *to = v;
                else
                    red_add4((float *)to, v);
            }
        }
    }
}
