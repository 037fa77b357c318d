/* evoengine
name: segment_sums_even_ranges
precision: fp32
summary: every warp takes as many numbers, finds its first segment by bisection, scans by segment with shuffles and adds the sums with atomics
tunables:
  ROUNDS: [16, 8]
let:
  PER_BLOCK: 8 * 32 * ROUNDS
scratch:
  sums: {dtype: float32, shape: [S], init: 0}
launches:
  - kernel: add_ranges
    grid: ["ceil_div(T, PER_BLOCK)"]
    block: [256]
    args: [x, offsets, sums, T, S]
  - kernel: copy
    grid: ["ceil_div(S, 256)"]
    block: [256]
    args: [sums, out, S]
*/
__device__ __forceinline__ int segment_of(const int* offsets, int S, int at) {
    int low = 0, high = S;   // the last segment that begins at `at` or before
    while (high - low > 1) {
        const int middle = (low + high) / 2;
        if (offsets[middle] <= at) low = middle;
        else high = middle;
    }
    return low;
}

__global__ void __launch_bounds__(256)
add_ranges(const float* __restrict__ x, const int* __restrict__ offsets, float* __restrict__ sums, int T, int S) {
    const int lane = threadIdx.x % 32;
    const int start = (blockIdx.x * 8 + threadIdx.x / 32) * 32 * ROUNDS;
    if (start >= T) return;
    int segment = segment_of(offsets, S, min(start + lane, T - 1));
    for (int round = 0; round < ROUNDS; ++round) {
        const int at = start + round * 32 + lane;
        float sum = at < T ? x[at] : 0.0f;
        if (at < T)
            while (offsets[segment + 1] <= at) ++segment;
        // Sums of the lanes of one segment, which are neighbours.
#pragma unroll
        for (int step = 1; step < 32; step *= 2) {
            const float other = __shfl_up_sync(~0u, sum, step);
            const int of = __shfl_up_sync(~0u, segment, step);
            if (lane >= step && of == segment) sum += other;
        }
        const int next = __shfl_down_sync(~0u, segment, 1);
        if (lane == 31 || next != segment) atomicAdd(sums + segment, sum);
    }
}

__global__ void __launch_bounds__(256) copy(const float* __restrict__ sums, float* __restrict__ out, int S) {
    const int at = blockIdx.x * 256 + threadIdx.x;
    if (at < S) out[at] = sums[at];
}
