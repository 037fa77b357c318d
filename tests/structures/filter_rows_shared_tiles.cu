/* evoengine
name: filter_rows_shared_tiles
precision: fp32
summary: a warp has 32 rows; tiles of 32 x 32 come and go side by side through shared memory, between them each lane filters its row
launches:
  - kernel: filter
    grid: ["ceil_div(N, 32)"]
    block: [32]
    args: [x, out, N, T]
*/
__global__ void __launch_bounds__(32) filter(const float* __restrict__ x, float* __restrict__ out, int N, int T) {
    __shared__ float tile[32][33];
    const int lane = threadIdx.x, row0 = blockIdx.x * 32;
    float last = 0.0f, before = 0.0f;
    for (int t0 = 0; t0 < T; t0 += 32) {
#pragma unroll 8
        for (int r = 0; r < 32; ++r) tile[r][lane] = row0 + r < N && t0 + lane < T ? x[size_t(row0 + r) * T + t0 + lane] : 0.0f;
        __syncwarp();
#pragma unroll
        for (int t = 0; t < 32; ++t) {
            const float y = tile[lane][t] + 0.5f * last - 0.25f * before;
            before = last, last = y;
            tile[lane][t] = y;
        }
        __syncwarp();
#pragma unroll 8
        for (int r = 0; r < 32; ++r)
            if (row0 + r < N && t0 + lane < T) out[size_t(row0 + r) * T + t0 + lane] = tile[r][lane];
        __syncwarp();
    }
}
