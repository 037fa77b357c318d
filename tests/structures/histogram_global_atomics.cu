/* evoengine
name: histogram_global_atomics
precision: exact
summary: every thread adds to the few counters of all blocks in global memory, by an atomic for each number
launches:
  - kernel: count
    grid: ["ceil_div(T, 256)"]
    block: [256]
    args: [values, counts, T]
  - kernel: copy
    grid: ["ceil_div(BINS, 256)"]
    block: [256]
    args: [counts, out, BINS]
scratch:
  counts: {dtype: int32, shape: [BINS], init: 0}
*/
__global__ void __launch_bounds__(256) count(const int* __restrict__ values, int* __restrict__ counts, int T) {
    const int at = blockIdx.x * 256 + threadIdx.x;
    if (at < T) atomicAdd(counts + values[at], 1);
}

__global__ void __launch_bounds__(256) copy(const int* __restrict__ counts, int* __restrict__ out, int BINS) {
    const int at = blockIdx.x * 256 + threadIdx.x;
    if (at < BINS) out[at] = counts[at];
}
