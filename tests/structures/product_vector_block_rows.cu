/* evoengine
name: product_vector_block_rows
precision: fp32
summary: a block a row, eight numbers a load; the vector comes from L1
launches:
  - kernel: multiply
    grid: [N]
    block: [128]
    args: [a, x, out, K]
*/
#include <cuda_fp16.h>

__global__ void __launch_bounds__(128)
multiply(const __half* __restrict__ a, const float* __restrict__ x, float* __restrict__ out, int K) {
    __shared__ float of_warp[4];
    const uint4* row = reinterpret_cast<const uint4*>(a + size_t(blockIdx.x) * K);
    const float4* vector = reinterpret_cast<const float4*>(x);
    float sum = 0.0f;
#pragma unroll 4
    for (int at = threadIdx.x; at < K / 8; at += 128) {
        const uint4 eight = row[at];
        const __half2* h = reinterpret_cast<const __half2*>(&eight);
        const float4 p = vector[2 * at], q = vector[2 * at + 1];
        const float2 h0 = __half22float2(h[0]), h1 = __half22float2(h[1]), h2 = __half22float2(h[2]), h3 = __half22float2(h[3]);
        sum += h0.x * p.x + h0.y * p.y + h1.x * p.z + h1.y * p.w + h2.x * q.x + h2.y * q.y + h3.x * q.z + h3.y * q.w;
    }
#pragma unroll
    for (int step = 16; step; step /= 2) sum += __shfl_xor_sync(~0u, sum, step);
    if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x == 0) out[blockIdx.x] = of_warp[0] + of_warp[1] + of_warp[2] + of_warp[3];
}
