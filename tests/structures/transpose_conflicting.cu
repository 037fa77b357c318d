/* evoengine
name: transpose_conflicting
precision: fp32
summary: tiles of 32 x 32 through shared memory without padding, so that 32 lanes that read a column meet in one bank
launches:
  - kernel: transpose
    grid: ["ceil_div(N, 32)", "ceil_div(M, 32)"]
    block: [32, 8]
    args: [x, out, M, N]
*/
__global__ void __launch_bounds__(256)
transpose(const float* __restrict__ x, float* __restrict__ out, int M, int N) {
    __shared__ float tile[32][32];
    const int column = blockIdx.x * 32 + threadIdx.x, row0 = blockIdx.y * 32;
#pragma unroll
    for (int i = 0; i < 32; i += 8) {
        const int row = row0 + threadIdx.y + i;
        if (row < M && column < N) tile[threadIdx.y + i][threadIdx.x] = x[size_t(row) * N + column];
    }
    __syncthreads();
    const int to = row0 + threadIdx.x;
#pragma unroll
    for (int i = 0; i < 32; i += 8) {
        const int from = blockIdx.x * 32 + threadIdx.y + i;
        if (from < N && to < M) out[size_t(from) * M + to] = tile[threadIdx.x][threadIdx.y + i];
    }
}
