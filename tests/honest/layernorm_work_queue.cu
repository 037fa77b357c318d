/* evoengine
name: layernorm_work_queue
precision: fp32
summary: persistent blocks take rows from a queue in global memory; the last block to finish resets it
tunables:
  THREADS: [256, 128, 512]
  BLOCKS_PER_SM: [4, 2, 8]
  ROWS_AT_ONCE: [4, 1, 2]
launches:
  - kernel: layernorm
    grid: ["min(SM_COUNT * BLOCKS_PER_SM, ceil_div(N, ROWS_AT_ONCE))"]
    block: [THREADS]
    args: [x, weight, bias, out, N, C, eps]
*/
__device__ unsigned next_row = 0;
__device__ unsigned finished_blocks = 0;

__device__ float block_sum(float v) {
    static __shared__ float of_warp[32];
    const int lane = threadIdx.x & 31;
    for (int o = 16; o; o >>= 1) v += __shfl_xor_sync(~0u, v, o);
    __syncthreads();
    if (!lane) of_warp[threadIdx.x >> 5] = v;
    __syncthreads();
    v = lane < THREADS / 32 ? of_warp[lane] : 0.f;
    for (int o = 16; o; o >>= 1) v += __shfl_xor_sync(~0u, v, o);
    return v;
}

__device__ void one_row(const float* in, const float* weight, const float* bias, float* out, int C, float eps) {
    float s = 0.f;
    for (int i = threadIdx.x; i < C; i += THREADS) s += in[i];
    const float mean = block_sum(s) / C;
    float d1 = 0.f, d2 = 0.f;
    for (int i = threadIdx.x; i < C; i += THREADS) {
        const float d = in[i] - mean;
        d1 += d, d2 += d * d;
    }
    const float low = block_sum(d1) / C;
    const float scale = rsqrtf(fmaxf(block_sum(d2) / C - low * low, 0.f) + eps);
    for (int i = threadIdx.x; i < C; i += THREADS) out[i] = ((in[i] - mean) - low) * scale * weight[i] + bias[i];
}

__global__ void __launch_bounds__(THREADS)
layernorm(const float* __restrict__ x, const float* __restrict__ weight, const float* __restrict__ bias,
          float* __restrict__ out, int N, int C, float eps) {
    __shared__ unsigned ticket;
    while (true) {
        __syncthreads();   // all have read the previous ticket
        if (threadIdx.x == 0) ticket = atomicAdd(&next_row, ROWS_AT_ONCE);
        __syncthreads();
        const unsigned first = ticket;
        if (first >= N) break;
        for (unsigned row = first; row < min(first + ROWS_AT_ONCE, unsigned(N)); ++row)
            one_row(x + size_t(row) * C, weight, bias, out + size_t(row) * C, C, eps);
    }
    // Every block draws its last ticket before it counts itself, so the one that counts last may reset the queue.
    if (threadIdx.x == 0) {
        __threadfence();
        if (atomicAdd(&finished_blocks, 1) == gridDim.x - 1) {
            next_row = 0;
            finished_blocks = 0;
            __threadfence();
        }
    }
}
