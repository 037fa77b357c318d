/* evoengine
name: gemm_two_buffers
precision: fp32
summary: persistent blocks walk over 32x32 tiles; slices of 16 of the depth in two buffers
launches:
  - kernel: gemm
    grid: [5]
    block: [256]
    args: [a, b, bias, out, M, N, K]
*/
constexpr int TILE = 32, DEPTH = 16;

__device__ void load_slice(const float* a, const float* b, float (*left)[DEPTH + 1], float (*right)[TILE], int m0,
                           int n0, int k0, int M, int N, int K) {
    for (int i = threadIdx.x; i < TILE * DEPTH; i += 256) {
        const int row = i / DEPTH, depth = i % DEPTH;
        left[row][depth] = m0 + row < M && k0 + depth < K ? a[size_t(m0 + row) * K + k0 + depth] : 0.0f;
    }
    for (int i = threadIdx.x; i < TILE * DEPTH; i += 256) {
        const int depth = i / TILE, column = i % TILE;
        right[depth][column] = k0 + depth < K && n0 + column < N ? b[size_t(k0 + depth) * N + n0 + column] : 0.0f;
    }
}

__global__ void gemm(const float* a, const float* b, const float* bias, float* out, int M, int N, int K) {
    __shared__ float left[2][TILE][DEPTH + 1];
    __shared__ float right[2][DEPTH][TILE];
    const int tiles_n = (N + TILE - 1) / TILE, tiles = (M + TILE - 1) / TILE * tiles_n;
    const int row = threadIdx.x / 16 * 2, column = threadIdx.x % 16 * 2;
    for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        const int m0 = tile / tiles_n * TILE, n0 = tile % tiles_n * TILE;
        float sum[2][2] = {};
        const int slices = (K + DEPTH - 1) / DEPTH;
        load_slice(a, b, left[0], right[0], m0, n0, 0, M, N, K);
        __syncthreads();
        for (int slice = 0; slice < slices; ++slice) {
            const int stage = slice % 2;
            if (slice + 1 < slices)
                load_slice(a, b, left[1 - stage], right[1 - stage], m0, n0, (slice + 1) * DEPTH, M, N, K);
            for (int d = 0; d < DEPTH; ++d)
                for (int r = 0; r < 2; ++r)
                    for (int c = 0; c < 2; ++c) sum[r][c] += left[stage][row + r][d] * right[stage][d][column + c];
            __syncthreads();
        }
        for (int r = 0; r < 2; ++r)
            for (int c = 0; c < 2; ++c) {
                const int m = m0 + row + r, n = n0 + column + c;
                if (m < M && n < N) out[size_t(m) * N + n] = fmaxf(sum[r][c] + bias[n], 0.0f);
            }
    }
}
