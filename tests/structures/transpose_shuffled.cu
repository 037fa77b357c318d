/* evoengine
name: transpose_shuffled
precision: fp32
summary: a warp transposes a tile of 32 x 32 in its registers, in five rounds of exchanges between lanes
launches:
  - kernel: transpose
    grid: ["ceil_div(N, 32)", "ceil_div(M, 128)"]
    block: [128]
    args: [x, out, M, N]
*/
__global__ void __launch_bounds__(128)
transpose(const float* __restrict__ x, float* __restrict__ out, int M, int N) {
    const int lane = threadIdx.x % 32;
    const int row0 = (blockIdx.y * 4 + threadIdx.x / 32) * 32, column0 = blockIdx.x * 32;
    float tile[32];
#pragma unroll
    for (int i = 0; i < 32; ++i)
        tile[i] = row0 + i < M && column0 + lane < N ? x[size_t(row0 + i) * N + column0 + lane] : 0.0f;
#pragma unroll
    for (int step = 16; step; step /= 2) {
        const bool upper = lane & step;
#pragma unroll
        for (int i = 0; i < 32; ++i) {
            if (i & step) continue;
            const float given = upper ? tile[i] : tile[i + step];
            const float taken = __shfl_xor_sync(~0u, given, step);
            if (upper) tile[i] = taken;
            else tile[i + step] = taken;
        }
    }
#pragma unroll
    for (int i = 0; i < 32; ++i)
        if (column0 + i < N && row0 + lane < M) out[size_t(column0 + i) * M + row0 + lane] = tile[i];
}
