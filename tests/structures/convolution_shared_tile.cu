/* evoengine
name: convolution_shared_tile
precision: fp32
summary: tiles of 16 x 16 points with their edges in shared memory, four channels at once; a thread computes eight filters for its point
launches:
  - kernel: convolve
    grid: ["ceil_div(W, 16)", "ceil_div(H, 16)", "B * (F // 8)"]
    block: [16, 16]
    args: [x, filters, out, C, F, H, W]
*/
__global__ void __launch_bounds__(256)
convolve(const float* __restrict__ x, const float* __restrict__ filters, float* __restrict__ out, int C, int F, int H, int W) {
    __shared__ float tile[4][18][19], weights[4][9][8];
    const int tx = threadIdx.x, ty = threadIdx.y, t = ty * 16 + tx;
    const int image = blockIdx.z / (F / 8), first = blockIdx.z % (F / 8) * 8;
    const int row = blockIdx.y * 16 + ty, column = blockIdx.x * 16 + tx;
    float sum[8] = {};
    for (int c0 = 0; c0 < C; c0 += 4) {
        __syncthreads();   // all have read the tile before
        for (int i = t; i < 4 * 18 * 18; i += 256) {
            const int c = i / 324, at = i % 324, y = blockIdx.y * 16 + at / 18 - 1, z = blockIdx.x * 16 + at % 18 - 1;
            tile[c][at / 18][at % 18] = y >= 0 && y < H && z >= 0 && z < W ? x[((size_t(image) * C + c0 + c) * H + y) * W + z] : 0.0f;
        }
        for (int i = t; i < 4 * 9 * 8; i += 256) {
            const int f = i / 36, c = i % 36 / 9, k = i % 9;
            weights[c][k][f] = filters[(size_t(first + f) * C + c0 + c) * 9 + k];
        }
        __syncthreads();
#pragma unroll
        for (int c = 0; c < 4; ++c)
#pragma unroll
            for (int k = 0; k < 9; ++k) {
                const float v = tile[c][ty + k / 3][tx + k % 3];
#pragma unroll
                for (int f = 0; f < 8; ++f) sum[f] += v * weights[c][k][f];
            }
    }
    if (row < H && column < W)
#pragma unroll
        for (int f = 0; f < 8; ++f) out[((size_t(image) * F + first + f) * H + row) * W + column] = sum[f];
}
