/* evoengine
name: scan_bf16_results
precision: bf16
summary: results are rounded to bfloat16, the carry is in single precision
launches:
  - kernel: scan
    grid: [N]
    block: [128]
    args: [x, out, L]
*/
#include <cuda_bf16.h>

constexpr int THREADS = 128, WARPS = 4;

__global__ void scan(const float* x, float* out, int L) {
    __shared__ float totals[WARPS];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const float* source = x + size_t(blockIdx.x) * L;
    float carry = 0.0f;  // the sum of all tiles before
    for (int start = 0; start < L; start += THREADS) {
        const int i = start + threadIdx.x;
        const float own = i < L ? source[i] : 0.0f;
        float sum = own;
        for (int step = 1; step < 32; step *= 2) {
            const float below = __shfl_up_sync(~0u, sum, step);
            if (lane >= step) sum += below;
        }
        if (lane == 31) totals[warp] = sum;
        __syncthreads();
        float before = carry, tile = 0.0f;
        for (int w = 0; w < WARPS; ++w) {
            if (w < warp) before += totals[w];
            tile += totals[w];
        }
        if (i < L) out[size_t(blockIdx.x) * L + i] = __bfloat162float(__float2bfloat16(before + sum));
        carry += tile;
        __syncthreads();  // the totals have been read
    }
}
