/* evoengine
name: product_scaled_blocks
precision: fp32
summary: tiles of 32 x 32, two by two results a thread; whole numbers are added by dp4a over 32 codes, then scaled and added in single precision
launches:
  - kernel: multiply_codes
    grid: ["ceil_div(N, 32)", "ceil_div(M, 32)"]
    block: [16, 16]
    args: [a, b, a_scales, b_scales, out, M, N, K]
*/
constexpr int SIDE = 16, THREADS = SIDE * SIDE, TILE = 32, GROUP = 32, WORDS = GROUP / 4;

__global__ void __launch_bounds__(THREADS)
multiply_codes(const int* __restrict__ a, const int* __restrict__ b, const float* __restrict__ a_scales,
               const float* __restrict__ b_scales, float* __restrict__ out, int M, int N, int K) {
    __shared__ int left[TILE][WORDS + 1], right[TILE][WORDS + 1];
    __shared__ float left_scales[TILE], right_scales[TILE];
    const int thread = threadIdx.y * SIDE + threadIdx.x, groups = K / GROUP;
    const int top = blockIdx.y * TILE, side = blockIdx.x * TILE;
    const int r = thread / WORDS, w = thread % WORDS;   // a thread stages a word of either

    int whole[2][2] = {};
    float sum[2][2] = {};
    for (int group = 0; group < groups; ++group) {
        left[r][w] = top + r < M ? a[size_t(top + r) * (K / 4) + group * WORDS + w] : 0;
        right[r][w] = side + r < N ? b[size_t(side + r) * (K / 4) + group * WORDS + w] : 0;
        if (thread < TILE) left_scales[thread] = top + thread < M ? a_scales[size_t(top + thread) * groups + group] : 0.0f;
        if (thread < TILE) right_scales[thread] = side + thread < N ? b_scales[size_t(side + thread) * groups + group] : 0.0f;
        __syncthreads();
#pragma unroll
        for (int d = 0; d < WORDS; ++d)
#pragma unroll
            for (int i = 0; i < 2; ++i)
#pragma unroll
                for (int j = 0; j < 2; ++j)
                    whole[i][j] = __dp4a(left[threadIdx.y + i * SIDE][d], right[threadIdx.x + j * SIDE][d], whole[i][j]);
#pragma unroll
        for (int i = 0; i < 2; ++i)
#pragma unroll
            for (int j = 0; j < 2; ++j) {
                const float scale = left_scales[threadIdx.y + i * SIDE] * right_scales[threadIdx.x + j * SIDE];
                sum[i][j] = fmaf(float(whole[i][j]), scale, sum[i][j]);
                whole[i][j] = 0;   // the next group has other scales
            }
        __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < 2; ++i)
#pragma unroll
        for (int j = 0; j < 2; ++j) {
            const int m = top + threadIdx.y + i * SIDE, n = side + threadIdx.x + j * SIDE;
            if (m < M && n < N) out[size_t(m) * N + n] = sum[i][j];
        }
}
