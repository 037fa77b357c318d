/* evoengine
name: scan_chunks
precision: fp32
summary: a block walks a row in chunks of 256 with a carry
launches:
  - kernel: scan
    grid: [N]
    block: [256]
    args: [x, out, L]
*/
constexpr int WARPS = 8;

__global__ void scan(const float* x, float* out, int L) {
    __shared__ float sums[WARPS];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const float* row = x + size_t(blockIdx.x) * L;
    float carry = 0.0f;
    for (int start = 0; start < L; start += 256) {
        const int at = start + threadIdx.x;
        const float value = at < L ? row[at] : 0.0f;
        float sum = value;
        for (int step = 1; step < 32; step *= 2) {
            const float before = __shfl_up_sync(~0u, sum, step);
            if (lane >= step) sum += before;
        }
        if (lane == 31) sums[warp] = sum;
        __syncthreads();
        float ahead = carry;
        for (int w = 0; w < warp; ++w) ahead += sums[w];
        if (at < L) out[size_t(blockIdx.x) * L + at] = ahead + sum - value;
        for (int w = 0; w < WARPS; ++w) carry += sums[w];
        __syncthreads();
    }
}
