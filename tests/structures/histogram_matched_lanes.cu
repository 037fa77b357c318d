/* evoengine
name: histogram_matched_lanes
precision: exact
summary: lanes with one number find one another, and one of them adds for all to the counters of the block in shared memory
launches:
  - kernel: count
    grid: [SM_COUNT * 2]
    block: [512]
    args: [values, counts, T, BINS]
  - kernel: copy
    grid: ["ceil_div(BINS, 256)"]
    block: [256]
    args: [counts, out, BINS]
scratch:
  counts: {dtype: int32, shape: [BINS], init: 0}
*/
__global__ void __launch_bounds__(512) count(const int* __restrict__ values, int* __restrict__ counts, int T, int BINS) {
    __shared__ int own[4096];
    const int lane = threadIdx.x % 32;
    for (int i = threadIdx.x; i < BINS; i += 512) own[i] = 0;
    __syncthreads();
    for (int first = blockIdx.x * 512; first < T; first += gridDim.x * 512) {
        const int at = first + threadIdx.x, value = at < T ? values[at] : -1;
        const unsigned same = __match_any_sync(~0u, value);
        if (value >= 0 && lane == __ffs(same) - 1) atomicAdd(own + value, __popc(same));
    }
    __syncthreads();
    for (int i = threadIdx.x; i < BINS; i += 512)
        if (own[i]) atomicAdd(counts + i, own[i]);
}

__global__ void __launch_bounds__(256) copy(const int* __restrict__ counts, int* __restrict__ out, int BINS) {
    const int at = blockIdx.x * 256 + threadIdx.x;
    if (at < BINS) out[at] = counts[at];
}
