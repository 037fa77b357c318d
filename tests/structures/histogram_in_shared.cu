/* evoengine
name: histogram_in_shared
precision: exact
summary: a histogram of each block in shared memory by atomics, added to that of all blocks by atomics
tunables:
  BLOCKS_PER_SM: [4, 2]
scratch:
  counts: {dtype: int32, shape: [BINS], init: 0}
launches:
  - kernel: count
    grid: [SM_COUNT * BLOCKS_PER_SM]
    block: [256]
    shared: 4 * BINS
    args: [values, counts, T, BINS]
  - kernel: copy
    grid: ["ceil_div(BINS, 256)"]
    block: [256]
    args: [counts, out, BINS]
*/
__global__ void __launch_bounds__(256)
count(const int* __restrict__ values, int* __restrict__ counts, int T, int BINS) {
    extern __shared__ int own[];
    for (int i = threadIdx.x; i < BINS; i += 256) own[i] = 0;
    __syncthreads();
    for (int at = blockIdx.x * 256 + threadIdx.x; at < T; at += gridDim.x * 256) atomicAdd(own + values[at], 1);
    __syncthreads();
    for (int i = threadIdx.x; i < BINS; i += 256)
        if (own[i]) atomicAdd(counts + i, own[i]);
}

__global__ void __launch_bounds__(256) copy(const int* __restrict__ counts, int* __restrict__ out, int BINS) {
    const int at = blockIdx.x * 256 + threadIdx.x;
    if (at < BINS) out[at] = counts[at];
}
