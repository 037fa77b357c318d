/* evoengine
name: transpose_bias
precision: fp32
summary: tiles of 32 x 32 through shared memory
launches:
  - kernel: transpose
    grid: ["ceil_div(N, 32)", "ceil_div(M, 32)", B]
    block: [32, 8]
    args: [x, bias, out, M, N]
*/
__global__ void transpose(const float* x, const float* bias, float* out, int M, int N) {
    __shared__ float tile[32][33];
    const int n0 = blockIdx.x * 32, m0 = blockIdx.y * 32;
    const float* source = x + size_t(blockIdx.z) * M * N;
    float* target = out + size_t(blockIdx.z) * M * N;
    for (int r = threadIdx.y; r < 32; r += 8) {
        const int m = m0 + r, n = n0 + threadIdx.x;
        tile[r][threadIdx.x] = m < M && n < N ? source[size_t(m) * N + n] : 0.0f;
    }
    __syncthreads();
    for (int r = threadIdx.y; r < 32; r += 8) {
        const int n = n0 + r, m = m0 + threadIdx.x;
        if (m < M && n < N) target[size_t(n) * M + m] = tile[threadIdx.x][r] + bias[n];
    }
}
