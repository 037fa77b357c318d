/* evoengine
name: max_pool_thread_each
precision: fp32
summary: a thread an output, whose place is divided out of one index
launches:
  - kernel: pool
    grid: ["ceil_div(B * C * (H // 2) * (W // 2), 256)"]
    block: [256]
    args: [x, out, B * C * (H // 2) * (W // 2), H, W]
*/
__global__ void __launch_bounds__(256) pool(const float* __restrict__ x, float* __restrict__ out, int count, int H, int W) {
    const int own = blockIdx.x * 256 + threadIdx.x;
    if (own >= count) return;
    const int width = W / 2, height = H / 2, column = own % width, row = own / width % height, plane = own / (width * height);
    const float* from = x + size_t(plane) * H * W;
    float most = -1e38f;
#pragma unroll
    for (int i = -1; i <= 1; ++i)
#pragma unroll
        for (int j = -1; j <= 1; ++j) {
            const int y = row * 2 + i, z = column * 2 + j;
            if (y >= 0 && y < H && z >= 0 && z < W) most = fmaxf(most, from[y * W + z]);
        }
    out[own] = most;
}
