/* evoengine
name: running_pair_scan
precision: fp32
summary: a block scans a row in chunks of 128 as pairs of a maximum and a sum; the whole of the chunks before is carried along
launches:
  - kernel: scan
    grid: [N]
    block: [128]
    args: [x, out, L]
*/
constexpr int THREADS = 128, WARPS = THREADS / 32;

struct Total { float top, sum; };   // sum * exp(top)

__device__ __forceinline__ Total join(Total a, Total b) {
    const float top = fmaxf(a.top, b.top);
    return {top, a.sum * expf(a.top - top) + b.sum * expf(b.top - top)};
}

__global__ void __launch_bounds__(THREADS) scan(const float* __restrict__ x, float* __restrict__ out, int L) {
    __shared__ Total of_warp[WARPS];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const float* row = x + size_t(blockIdx.x) * L;
    Total carry = {-1e30f, 0.0f};
    for (int start = 0; start < L; start += THREADS) {
        const int i = start + threadIdx.x;
        Total own = {-1e30f, 0.0f};
        if (i < L) own = {row[i], 1.0f};
        for (int step = 1; step < 32; step *= 2) {
            const Total before = {__shfl_up_sync(~0u, own.top, step), __shfl_up_sync(~0u, own.sum, step)};
            if (lane >= step) own = join(before, own);
        }
        if (lane == 31) of_warp[warp] = own;
        __syncthreads();
        Total ahead = carry;
        for (int w = 0; w < warp; ++w) ahead = join(ahead, of_warp[w]);
        const Total whole = join(ahead, own);
        if (i < L) out[size_t(blockIdx.x) * L + i] = whole.top + logf(whole.sum);
        for (int w = 0; w < WARPS; ++w) carry = join(carry, of_warp[w]);
        __syncthreads();
    }
}
