/* evoengine
name: eight_bit_product_warp_rows
precision: fp32
summary: a warp a row of e4m3 codes, 16 a load, each pair converted to halves and then to floats; the vector lies in shared memory
launches:
  - kernel: product
    grid: ["ceil_div(N, 8)"]
    block: [256]
    shared: 4 * K
    args: [codes, x, out, N, K]
*/
#include <cuda_fp16.h>
#include <cuda_fp8.h>

__device__ __forceinline__ float2 converted(unsigned short pair) {
    return __half22float2(__half2(__nv_cvt_fp8x2_to_halfraw2(pair, __NV_E4M3)));
}

__global__ void __launch_bounds__(256)
product(const unsigned char* __restrict__ codes, const float* __restrict__ x, float* __restrict__ out, int N, int K) {
    extern __shared__ float4 vector[];
    for (int i = threadIdx.x; i < K / 4; i += 256) vector[i] = reinterpret_cast<const float4*>(x)[i];
    __syncthreads();
    const int row = blockIdx.x * 8 + threadIdx.x / 32, lane = threadIdx.x % 32;
    if (row >= N) return;
    const uint4* from = reinterpret_cast<const uint4*>(codes + size_t(row) * K);
    float sum = 0.0f;
    for (int at = lane; at < K / 16; at += 32) {
        const uint4 item = from[at];
        const unsigned words[4] = {item.x, item.y, item.z, item.w};
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const float2 low = converted(words[i] & 0xffff), high = converted(words[i] >> 16);
            const float4 v = vector[at * 4 + i];
            sum += low.x * v.x + low.y * v.y + high.x * v.z + high.y * v.w;
        }
    }
#pragma unroll
    for (int step = 16; step; step /= 2) sum += __shfl_xor_sync(~0u, sum, step);
    if (lane == 0) out[row] = sum;
}
