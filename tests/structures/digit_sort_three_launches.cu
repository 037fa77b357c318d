/* evoengine
name: digit_sort_three_launches
precision: exact
summary: a pass of a radix sort; blocks count their digits, one block sums the counts, and blocks rank their numbers by votes and write them
let:
  BLOCKS: ceil_div(T, 2048)
scratch:
  counts: {dtype: int32, shape: [16, BLOCKS]}
launches:
  - kernel: tally
    grid: [BLOCKS]
    block: [256]
    args: [keys, counts, T]
  - kernel: sum
    grid: [1]
    block: [1024]
    args: [counts, 16 * BLOCKS]
  - kernel: write
    grid: [BLOCKS]
    block: [256]
    args: [keys, counts, out, T]
*/
__global__ void __launch_bounds__(256) tally(const int* __restrict__ keys, int* __restrict__ counts, int T) {
    __shared__ int bins[16];
    if (threadIdx.x < 16) bins[threadIdx.x] = 0;
    __syncthreads();
    for (int i = threadIdx.x; i < 2048; i += 256) {
        const int at = blockIdx.x * 2048 + i;
        if (at < T) atomicAdd(&bins[keys[at] & 15], 1);
    }
    __syncthreads();
    if (threadIdx.x < 16) counts[threadIdx.x * gridDim.x + blockIdx.x] = bins[threadIdx.x];
}

// Exclusive sums in place.
__global__ void __launch_bounds__(1024) sum(int* __restrict__ counts, int length) {
    __shared__ int of_warp[32];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    int before = 0;
    for (int first = 0; first < length; first += 1024) {
        const int at = first + threadIdx.x, own = at < length ? counts[at] : 0;
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
        if (at < length) counts[at] = before + sum - own + (warp ? of_warp[warp - 1] : 0);
        before += of_warp[31];
        __syncthreads();
    }
}

__global__ void __launch_bounds__(256) write(const int* __restrict__ keys, const int* __restrict__ counts, int* __restrict__ out, int T) {
    __shared__ int of_warp[8][16], next[16];
    const int t = threadIdx.x, lane = t % 32, warp = t / 32;
    if (t < 16) next[t] = counts[t * gridDim.x + blockIdx.x];
    for (int round = 0; round < 8; ++round) {
        const int at = blockIdx.x * 2048 + round * 256 + t;
        const int key = at < T ? keys[at] : 0, digit = key & 15;
        unsigned alike = __ballot_sync(~0u, at < T);
#pragma unroll
        for (int bit = 0; bit < 4; ++bit) {
            const unsigned votes = __ballot_sync(~0u, digit >> bit & 1);
            alike &= digit >> bit & 1 ? votes : ~votes;
        }
        const int rank = __popc(alike & ((1u << lane) - 1));
        if (lane < 16) of_warp[warp][lane] = 0;
        __syncwarp();
        if (at < T && rank == 0) of_warp[warp][digit] = __popc(alike);
        __syncthreads();
        if (t < 16) {
            int sum = next[t];
#pragma unroll
            for (int w = 0; w < 8; ++w) {
                const int own = of_warp[w][t];
                of_warp[w][t] = sum;
                sum += own;
            }
            next[t] = sum;
        }
        __syncthreads();
        if (at < T) out[of_warp[warp][digit] + rank] = key;
        __syncthreads();
    }
}
