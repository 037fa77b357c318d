/* evoengine
name: histogram_per_warp
precision: exact
summary: a histogram of each warp in shared memory, four numbers a load; those of a block are summed and added to that of all by atomics
tunables:
  BLOCKS_PER_SM: [2, 4]
launches:
  - kernel: count
    grid: [SM_COUNT * BLOCKS_PER_SM]
    block: [256]
    shared: 4 * 8 * BINS
    args: [values, counts, T, BINS]
  - kernel: copy
    grid: ["ceil_div(BINS, 256)"]
    block: [256]
    args: [counts, out, BINS]
scratch:
  counts: {dtype: int32, shape: [BINS], init: 0}
*/
__global__ void __launch_bounds__(256)
count(const int* __restrict__ values, int* __restrict__ counts, int T, int BINS) {
    extern __shared__ int every[];   // [8][BINS]
    int* own = every + threadIdx.x / 32 * BINS;
    for (int i = threadIdx.x; i < 8 * BINS; i += 256) every[i] = 0;
    __syncthreads();
    for (int at = blockIdx.x * 256 + threadIdx.x; at < T / 4; at += gridDim.x * 256) {
        const int4 v = reinterpret_cast<const int4*>(values)[at];
        atomicAdd(own + v.x, 1);
        atomicAdd(own + v.y, 1);
        atomicAdd(own + v.z, 1);
        atomicAdd(own + v.w, 1);
    }
    if (blockIdx.x == 0 && threadIdx.x < T % 4) atomicAdd(own + values[T - 1 - threadIdx.x], 1);
    __syncthreads();
    for (int i = threadIdx.x; i < BINS; i += 256) {
        int sum = 0;
#pragma unroll
        for (int warp = 0; warp < 8; ++warp) sum += every[warp * BINS + i];
        if (sum) atomicAdd(counts + i, sum);
    }
}

__global__ void __launch_bounds__(256) copy(const int* __restrict__ counts, int* __restrict__ out, int BINS) {
    const int at = blockIdx.x * 256 + threadIdx.x;
    if (at < BINS) out[at] = counts[at];
}
