/* evoengine
name: depthwise_thread_per_point
precision: fp32
summary: a thread a point, which loads its nine neighbours from global memory and the filter of its channel
launches:
  - kernel: convolve
    grid: ["ceil_div(W, 32)", "ceil_div(H, 8)", B * C]
    block: [32, 8]
    args: [x, filters, out, C, H, W]
*/
__global__ void __launch_bounds__(256)
convolve(const float* __restrict__ x, const float* __restrict__ filters, float* __restrict__ out, int C, int H, int W) {
    const int column = blockIdx.x * 32 + threadIdx.x, row = blockIdx.y * 8 + threadIdx.y;
    const float* plane = x + size_t(blockIdx.z) * H * W;
    const float* filter = filters + blockIdx.z % C * 9;
    float sum = 0.0f;
#pragma unroll
    for (int i = -1; i <= 1; ++i)
#pragma unroll
        for (int j = -1; j <= 1; ++j) {
            const int y = row + i, z = column + j;
            if (y >= 0 && y < H && z >= 0 && z < W) sum += plane[y * W + z] * filter[(i + 1) * 3 + j + 1];
        }
    if (row < H && column < W) out[size_t(blockIdx.z) * H * W + row * W + column] = sum;
}
