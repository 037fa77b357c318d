/* evoengine
name: layernorm_prefetched_rows
precision: fp32
summary: persistent blocks copy the next row to shared memory with cp.async while they work on the current one
tunables:
  THREADS: [256, 512, 128]
  BLOCKS_PER_SM: [2, 4]
let:
  BYTES: 16 if C % 4 == 0 else 4
  ROW: round_up(C, 4)
require:
  - 8 * ROW <= MAX_SHARED_BYTES
launches:
  - kernel: layernorm<BYTES>
    grid: ["min(N, SM_COUNT * BLOCKS_PER_SM)"]
    block: [THREADS]
    shared: 8 * ROW
    args: [x, weight, bias, out, N, C, ROW, eps]
*/
#include <cuda_pipeline.h>

template <int BYTES> __device__ void fetch(float* to, const float* from, int C) {
    for (int i = threadIdx.x * (BYTES / 4); i < C; i += THREADS * (BYTES / 4)) __pipeline_memcpy_async(to + i, from + i, BYTES);
    __pipeline_commit();
}

__device__ float sum_all(float v) {
    __shared__ float table[32];
    for (int o = 16; o; o >>= 1) v += __shfl_xor_sync(0xffffffffu, v, o);
    if (threadIdx.x % 32 == 0) table[threadIdx.x / 32] = v;
    __syncthreads();
    v = 0;
    for (int w = 0; w < THREADS / 32; ++w) v += table[w];
    __syncthreads();
    return v;
}

template <int BYTES>
__global__ void __launch_bounds__(THREADS)
layernorm(const float* __restrict__ x, const float* __restrict__ weight, const float* __restrict__ bias,
          float* __restrict__ out, int N, int C, int pitch, float eps) {
    extern __shared__ __align__(16) float buffers[];
    int turn = 0;
    fetch<BYTES>(buffers, x + size_t(blockIdx.x) * C, C);
    for (int row = blockIdx.x; row < N; row += gridDim.x, turn ^= 1) {
        const int following = row + gridDim.x;
        if (following < N) fetch<BYTES>(buffers + (turn ^ 1) * pitch, x + size_t(following) * C, C);
        else __pipeline_commit();   // an empty group keeps the count
        __pipeline_wait_prior(1);
        __syncthreads();
        const float* in = buffers + turn * pitch;
        float s = 0;
        for (int i = threadIdx.x; i < C; i += THREADS) s += in[i];
        const float mean = sum_all(s) / C;
        float first = 0, second = 0;
        for (int i = threadIdx.x; i < C; i += THREADS) {
            const float d = in[i] - mean;
            first += d, second += d * d;
        }
        first = sum_all(first) / C;
        const float scale = 1.0f / sqrtf(fmaxf(sum_all(second) / C - first * first, 0.0f) + eps);
        for (int i = threadIdx.x; i < C; i += THREADS)
            out[size_t(row) * C + i] = (in[i] - mean - first) * scale * weight[i] + bias[i];
        __syncthreads();   // the row is read before the copy after the next one overwrites it
    }
}
