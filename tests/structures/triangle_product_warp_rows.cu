/* evoengine
name: triangle_product_warp_rows
precision: fp32
summary: a warp a row, as far as its diagonal
launches:
  - kernel: multiply
    grid: ["ceil_div(N, 4)"]
    block: [128]
    args: [a, x, out, N]
*/
__global__ void __launch_bounds__(128) multiply(const float* __restrict__ a, const float* __restrict__ x, float* __restrict__ out, int N) {
    const int row = blockIdx.x * 4 + threadIdx.x / 32, lane = threadIdx.x % 32;
    if (row >= N) return;
    const float4* from = reinterpret_cast<const float4*>(a + size_t(row) * N);
    float sum = 0.0f;
    for (int i = lane; i <= row / 4; i += 32) {
        const float4 v = from[i], w = reinterpret_cast<const float4*>(x)[i];
        sum += v.x * w.x + v.y * w.y + v.z * w.z + v.w * w.w;   // zero above the diagonal
    }
#pragma unroll
    for (int step = 16; step; step /= 2) sum += __shfl_xor_sync(~0u, sum, step);
    if (lane == 0) out[row] = sum;
}
