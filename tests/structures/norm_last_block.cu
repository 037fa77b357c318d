/* evoengine
name: norm_last_block
precision: fp32
summary: every block sums its part; the one that finishes last, by a counter, sums the parts
tunables:
  BLOCKS_PER_SM: [4, 2]
let:
  BLOCKS: SM_COUNT * BLOCKS_PER_SM
scratch:
  parts: {dtype: float32, shape: [BLOCKS]}
  done: {dtype: int32, shape: [1], init: 0}
launches:
  - kernel: root_of_squares
    grid: [BLOCKS]
    block: [256]
    args: [x, parts, done, out, T]
*/
__device__ float block_sum(float sum) {   // in thread 0
    __shared__ float of_warp[8];
#pragma unroll
    for (int step = 16; step; step /= 2) sum += __shfl_xor_sync(~0u, sum, step);
    __syncthreads();
    if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = sum;
    __syncthreads();
    sum = 0.0f;
    if (threadIdx.x == 0)
        for (int i = 0; i < 8; ++i) sum += of_warp[i];
    return sum;
}

__global__ void __launch_bounds__(256)
root_of_squares(const float* __restrict__ x, float* parts, int* done, float* __restrict__ out, int T) {
    __shared__ bool last;
    float sum = 0.0f;
    for (int at = blockIdx.x * 256 + threadIdx.x; at < T / 4; at += gridDim.x * 256) {
        const float4 v = reinterpret_cast<const float4*>(x)[at];
        sum += v.x * v.x + v.y * v.y + v.z * v.z + v.w * v.w;
    }
    sum = block_sum(sum);
    if (threadIdx.x == 0) {
        parts[blockIdx.x] = sum;
        __threadfence();
        last = atomicAdd(done, 1) == gridDim.x - 1;
    }
    __syncthreads();
    if (!last) return;
    __threadfence();
    sum = 0.0f;
    for (int i = threadIdx.x; i < gridDim.x; i += 256) sum += __ldcg(parts + i);
    sum = block_sum(sum);
    if (threadIdx.x == 0) *out = sqrtf(sum);
}
