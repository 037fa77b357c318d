/* evoengine
name: segment_sums_queue
precision: fp32
summary: warps of persistent blocks take segments of any length, four at once, from a counter in global memory
tunables:
  BLOCKS_PER_SM: [4, 8]
scratch:
  next: {dtype: int32, shape: [1], init: 0}
launches:
  - kernel: segment_sums
    grid: [SM_COUNT * BLOCKS_PER_SM]
    block: [256]
    args: [x, offsets, next, out, S]
*/
__global__ void __launch_bounds__(256)
segment_sums(const float* __restrict__ x, const int* __restrict__ offsets, int* __restrict__ next, float* __restrict__ out, int S) {
    const int lane = threadIdx.x % 32;
    while (true) {
        int first = 0;
        if (lane == 0) first = atomicAdd(next, 4);
        first = __shfl_sync(~0u, first, 0);
        if (first >= S) return;
        for (int segment = first; segment < min(first + 4, S); ++segment) {
            const int end = offsets[segment + 1];
            float sum = 0.0f;
            for (int at = offsets[segment] + lane; at < end; at += 32) sum += x[at];
#pragma unroll
            for (int step = 16; step; step /= 2) sum += __shfl_xor_sync(~0u, sum, step);
            if (lane == 0) out[segment] = sum;
        }
    }
}
