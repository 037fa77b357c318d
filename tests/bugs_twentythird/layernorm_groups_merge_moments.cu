/* evoengine
name: layernorm_groups_merge_moments
precision: fp32
summary: a group of warps holds its row in registers; Welford's moments of threads are merged by shuffles, groups have barriers of their own
tunables:
  WARPS_PER_ROW: [8, 4, 16]    # a power of two
  ROWS_PER_BLOCK: [2, 1]
let:
  HELD: ceil_div(C, WARPS_PER_ROW * WARP_SIZE)
launches:
  - kernel: normalise_rows<HELD>
    grid: ["ceil_div(N, ROWS_PER_BLOCK)"]
    block: [WARPS_PER_ROW * WARP_SIZE * ROWS_PER_BLOCK]
    args: [x, weight, bias, out, N, C, eps]
*/

// out = (x - mean) / sqrt(variance + eps) * weight + bias by rows. A row is read once. Its mean in single
// precision is only a centre: moments are those of the distances from it, so that the rounding of a large
// mean comes out as the small mean of the distances.

constexpr int GROUP = WARPS_PER_ROW * 32;

struct Moments {
    float n, mean, m2;   // m2: the sum of the squared distances from the mean

    // Chan's formula for two disjoint parts.
    __device__ __forceinline__ void merge(const Moments& other) {
        const float total = n + other.n;
        const float share = total > 0.0f ? other.n / total : 0.0f;
        const float gap = other.mean - mean;
        m2 += other.m2 + gap * gap * n * share;
        mean += gap * share;
        n = total;
    }

    __device__ __forceinline__ Moments from_lane(int mask) const {
        return {__shfl_xor_sync(0xffffffffu, n, mask), __shfl_xor_sync(0xffffffffu, mean, mask),
                __shfl_xor_sync(0xffffffffu, m2, mask)};
    }
};

// Waits for the threads of one row only: the other row of the block may have ended already.
__device__ __forceinline__ void group_barrier(int group) {
    asm volatile("bar.sync %0, %1;" ::"r"(group + 1), "n"(GROUP) : "memory");
}

template <int HELD>
__global__ void __launch_bounds__(GROUP * ROWS_PER_BLOCK)
normalise_rows(const float* __restrict__ x, const float* __restrict__ weight, const float* __restrict__ bias,
               float* __restrict__ out, int N, int C, float eps) {
    __shared__ float warp_sums[ROWS_PER_BLOCK][WARPS_PER_ROW];
    __shared__ Moments warp_moments[ROWS_PER_BLOCK][WARPS_PER_ROW];
    const int group = threadIdx.x / GROUP, member = threadIdx.x % GROUP;
    const int warp = member / 32, lane = member % 32;
    const long long row = static_cast<long long>(blockIdx.x) * ROWS_PER_BLOCK + group;
    if (row >= N) return;
    const float* source = x + row * C;

    float held[HELD], sum = 0.0f;
#pragma unroll
    for (int k = 0; k < HELD; ++k) {
        const int column = member + k * GROUP;
        held[k] = column < C ? source[column] : 0.0f;
        sum += held[k];
    }
#pragma unroll
    for (int mask = 16; mask > 0; mask >>= 1) sum += __shfl_xor_sync(0xffffffffu, sum, mask);
    if (lane == 0) warp_sums[group][warp] = sum;
    group_barrier(group);
    float row_sum = 0.0f;
#pragma unroll
    for (int w = 0; w < WARPS_PER_ROW; ++w) row_sum += warp_sums[group][w];
    const float centre = row_sum / C;

    Moments moments = {0.0f, 0.0f, 0.0f};
#pragma unroll
    for (int k = 0; k < HELD; ++k) {
        if (member + k * GROUP < C) {   // true of the first ones, so that the count is k + 1
            const float distance = held[k] - centre;
            const float step = distance - moments.mean;
            moments.n = k + 1;
            moments.mean += step * (1.0f / (k + 1));
            moments.m2 += step * (distance - moments.mean);
        }
    }
#pragma unroll
    for (int mask = 16; mask > 0; mask >>= 1) moments.merge(moments.from_lane(mask));
    if (lane == 0) warp_moments[group][warp] = moments;
    group_barrier(group);
    moments = warp_moments[group][lane % WARPS_PER_ROW];
#pragma unroll
    for (int mask = WARPS_PER_ROW / 2; mask > 0; mask >>= 1) moments.merge(moments.from_lane(mask));

    const float inverse_std = 1.0f / sqrtf(moments.m2 / moments.n + eps);
#pragma unroll
    for (int k = 0; k < HELD; ++k) {
        const int column = member + k * GROUP;
        if (column < C)
            out[row * C + column] = ((held[k] - centre) - moments.mean) * inverse_std * weight[column] + bias[column];
    }
}
