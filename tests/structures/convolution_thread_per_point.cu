/* evoengine
name: convolution_thread_per_point
precision: fp32
summary: direct; a thread computes eight filters at one point, its inputs through L1, filters in constant order from shared memory
launches:
  - kernel: convolve
    grid: ["ceil_div(H * W, 128)", F / 8, B]
    block: [128]
    shared: 4 * 8 * 9 * C
    args: [x, filters, out, C, F, H, W]
*/
__global__ void __launch_bounds__(128)
convolve(const float* __restrict__ x, const float* __restrict__ filters, float* __restrict__ out, int C, int F, int H, int W) {
    extern __shared__ float own[];   // [C * 9][8]
    const int f0 = blockIdx.y * 8;
    for (int i = threadIdx.x; i < C * 72; i += 128) own[i] = filters[size_t(f0 + i % 8) * C * 9 + i / 8];
    __syncthreads();
    const int point = blockIdx.x * 128 + threadIdx.x, row = point / W, column = point % W;
    if (point >= H * W) return;
    float sum[8] = {};
    for (int c = 0; c < C; ++c) {
        const float* plane = x + (size_t(blockIdx.z) * C + c) * H * W;
#pragma unroll
        for (int dy = 0; dy < 3; ++dy)
#pragma unroll
            for (int dx = 0; dx < 3; ++dx) {
                const int r = row + dy - 1, s = column + dx - 1;
                const float v = r >= 0 && r < H && s >= 0 && s < W ? plane[r * W + s] : 0.0f;
                const float* factors = own + (c * 9 + dy * 3 + dx) * 8;
#pragma unroll
                for (int f = 0; f < 8; ++f) sum[f] += v * factors[f];
            }
    }
#pragma unroll
    for (int f = 0; f < 8; ++f) out[(size_t(blockIdx.z) * F + f0 + f) * H * W + point] = sum[f];
}
