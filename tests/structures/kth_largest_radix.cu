/* evoengine
name: kth_largest_radix
precision: fp32
summary: a block a row; four readings, each of which counts the next eight bits of what is left in shared memory and chooses a bin
launches:
  - kernel: choose
    grid: [N]
    block: [256]
    args: [x, out, C, K]
*/
__device__ __forceinline__ unsigned ordered(float v) {   // as numbers are
    const unsigned bits = __float_as_uint(v);
    return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}

__global__ void __launch_bounds__(256) choose(const float* __restrict__ x, float* __restrict__ out, int C, int K) {
    __shared__ int bins[256], of_warp[8], shared_bin, shared_above;
    const int t = threadIdx.x, lane = t % 32, warp = t / 32;
    const float* row = x + size_t(blockIdx.x) * C;
    unsigned prefix = 0, mask = 0;
    int wanted = K;   // the wanted-th largest of those with this prefix
#pragma unroll
    for (int shift = 24; shift >= 0; shift -= 8) {
        bins[t] = 0;
        __syncthreads();
        for (int i = t; i < C; i += 256) {
            const unsigned key = ordered(row[i]);
            if ((key & mask) == prefix) atomicAdd(&bins[key >> shift & 255], 1);
        }
        __syncthreads();
        const int own = bins[255 - t];   // the highest bin first
        int sum = own;
#pragma unroll
        for (int step = 1; step < 32; step *= 2) {
            const int other = __shfl_up_sync(~0u, sum, step);
            if (lane >= step) sum += other;
        }
        if (lane == 31) of_warp[warp] = sum;
        __syncthreads();
        for (int i = 0; i < warp; ++i) sum += of_warp[i];
        if (sum >= wanted && sum - own < wanted) shared_bin = 255 - t, shared_above = sum - own;
        __syncthreads();
        prefix |= unsigned(shared_bin) << shift;
        mask |= 255u << shift;
        wanted -= shared_above;
    }
    if (t == 0) out[blockIdx.x] = __uint_as_float(prefix & 0x80000000u ? prefix & 0x7fffffffu : ~prefix);
}
