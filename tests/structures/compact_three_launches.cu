/* evoengine
name: compact_three_launches
precision: fp32
summary: blocks count what they keep, one block sums the counts, and blocks write by the votes of their warps
let:
  BLOCKS: ceil_div(T, 2048)
scratch:
  counts: {dtype: int32, shape: [BLOCKS]}
launches:
  - kernel: tally
    grid: [BLOCKS]
    block: [256]
    args: [x, counts, T]
  - kernel: sum
    grid: [1]
    block: [1024]
    args: [counts, count, BLOCKS]
  - kernel: write
    grid: [BLOCKS]
    block: [256]
    args: [x, counts, out, T]
*/
__global__ void __launch_bounds__(256) tally(const float* __restrict__ x, int* __restrict__ counts, int T) {
    __shared__ int of_warp[8];
    int own = 0;
#pragma unroll
    for (int i = 0; i < 8; ++i) {
        const int at = blockIdx.x * 2048 + i * 256 + threadIdx.x;
        own += at < T && x[at] > 0.0f;
    }
    own = __reduce_add_sync(~0u, own);
    if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = own;
    __syncthreads();
    if (threadIdx.x == 0) {
        int all = 0;
#pragma unroll
        for (int i = 0; i < 8; ++i) all += of_warp[i];
        counts[blockIdx.x] = all;
    }
}

// Exclusive sums in place.
__global__ void __launch_bounds__(1024) sum(int* __restrict__ counts, int* __restrict__ count, int blocks) {
    __shared__ int of_warp[32];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    int before = 0;
    for (int first = 0; first < blocks; first += 1024) {
        const int at = first + threadIdx.x, own = at < blocks ? counts[at] : 0;
        int sum = own;
#pragma unroll
        for (int step = 1; step < 32; step *= 2) {
            const int other = __shfl_up_sync(~0u, sum, step);
            if (lane >= step) sum += other;
        }
        if (lane == 31) of_warp[warp] = sum;
        __syncthreads();
        if (warp == 0) {
            int more = of_warp[lane];
#pragma unroll
            for (int step = 1; step < 32; step *= 2) {
                const int other = __shfl_up_sync(~0u, more, step);
                if (lane >= step) more += other;
            }
            of_warp[lane] = more;
        }
        __syncthreads();
        if (at < blocks) counts[at] = before + sum - own + (warp ? of_warp[warp - 1] : 0);
        before += of_warp[31];
        __syncthreads();
    }
    if (threadIdx.x == 0) *count = before;
}

__global__ void __launch_bounds__(256) write(const float* __restrict__ x, const int* __restrict__ counts, float* __restrict__ out, int T) {
    __shared__ int of_warp[64];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    float v[8];
    unsigned votes[8];
#pragma unroll
    for (int i = 0; i < 8; ++i) {
        const int at = blockIdx.x * 2048 + i * 256 + threadIdx.x;
        v[i] = at < T ? x[at] : 0.0f;
    }
#pragma unroll
    for (int i = 0; i < 8; ++i) {
        votes[i] = __ballot_sync(~0u, v[i] > 0.0f);
        if (lane == 0) of_warp[i * 8 + warp] = __popc(votes[i]);
    }
    __syncthreads();
    if (warp == 0) {
        const int first = of_warp[2 * lane], second = of_warp[2 * lane + 1];
        int sum = first + second;
#pragma unroll
        for (int step = 1; step < 32; step *= 2) {
            const int other = __shfl_up_sync(~0u, sum, step);
            if (lane >= step) sum += other;
        }
        of_warp[2 * lane] = sum - first - second;
        of_warp[2 * lane + 1] = sum - second;
    }
    __syncthreads();
    float* to = out + counts[blockIdx.x];
#pragma unroll
    for (int i = 0; i < 8; ++i)
        if (v[i] > 0.0f) to[of_warp[i * 8 + warp] + __popc(votes[i] & ((1u << lane) - 1))] = v[i];
}
