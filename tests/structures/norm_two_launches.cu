/* evoengine
name: norm_two_launches
precision: fp32
summary: a launch of blocks that each sum eight vectors a thread, and one block that sums their parts
let:
  BLOCKS: ceil_div(T, 8192)
scratch:
  parts: {dtype: float32, shape: [BLOCKS]}
launches:
  - kernel: squares
    grid: [BLOCKS]
    block: [256]
    args: [x, parts, T]
  - kernel: root
    grid: [1]
    block: [256]
    args: [parts, out, BLOCKS]
*/
__device__ float block_sum(float sum) {   // in thread 0
    __shared__ float of_warp[8];
#pragma unroll
    for (int step = 16; step; step /= 2) sum += __shfl_xor_sync(~0u, sum, step);
    if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = sum;
    __syncthreads();
    sum = 0.0f;
    if (threadIdx.x == 0)
        for (int i = 0; i < 8; ++i) sum += of_warp[i];
    return sum;
}

__global__ void __launch_bounds__(256) squares(const float* __restrict__ x, float* __restrict__ parts, int T) {
    float sum = 0.0f;
#pragma unroll
    for (int i = 0; i < 8; ++i) {
        const int at = blockIdx.x * 2048 + i * 256 + threadIdx.x;
        const float4 v = at < T / 4 ? reinterpret_cast<const float4*>(x)[at] : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        sum += v.x * v.x + v.y * v.y + v.z * v.z + v.w * v.w;
    }
    sum = block_sum(sum);
    if (threadIdx.x == 0) parts[blockIdx.x] = sum;
}

__global__ void __launch_bounds__(256) root(const float* __restrict__ parts, float* __restrict__ out, int blocks) {
    float sum = 0.0f;
    for (int i = threadIdx.x; i < blocks; i += 256) sum += parts[i];
    sum = block_sum(sum);
    if (threadIdx.x == 0) *out = sqrtf(sum);
}
