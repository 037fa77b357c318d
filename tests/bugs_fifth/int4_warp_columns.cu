/* evoengine
name: int4_warp_columns
precision: fp32
summary: a warp has one output column for four rows of x; a lane unpacks words of eight codes, the zero is taken off by the sum of x
launches:
  - kernel: linear
    grid: ["ceil_div(N, 4)", "ceil_div(M, 4)"]
    block: [32, 4]
    args: [x, codes, scales, zeros, bias, out, M, N, K, GROUP]
*/
constexpr int ROWS = 4;

__global__ void __launch_bounds__(128)
linear(const float* __restrict__ x, const unsigned char* __restrict__ codes, const float* __restrict__ scales,
       const unsigned char* __restrict__ zeros, const float* __restrict__ bias, float* __restrict__ out, int M, int N, int K,
       int group_size) {
    const int lane = threadIdx.x, column = blockIdx.x * 4 + threadIdx.y, first_row = blockIdx.y * ROWS;
    if (column >= N) return;
    const int groups = K / group_size;
    const unsigned* words = reinterpret_cast<const unsigned*>(codes + size_t(column) * (K / 2));
    float sum[ROWS] = {};
    for (int w = lane; w < K / 8; w += 32) {
        const unsigned word = words[w];
        const int group = w * 8 / group_size;
        const float scale = scales[size_t(column) * groups + group];
        const float zero = float(zeros[size_t(column) * groups + group]);
        #pragma unroll
        for (int r = 0; r < ROWS; ++r) {
            const int row = min(first_row + r, M - 1);
            const float4* from = reinterpret_cast<const float4*>(x + size_t(row) * K + w * 8);
            const float4 low = from[0], high = from[1];
            const float values[8] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
            float dot = 0.0f, plain = 0.0f;
            #pragma unroll
            for (int j = 0; j < 8; ++j) {
                const int code = (word >> (4 * j)) & 15;
                dot = fmaf(values[j], float(code), dot);
                plain += values[j];
            }
            sum[r] = fmaf(scale, dot - zero * plain, sum[r]);
        }
    }
    #pragma unroll
    for (int r = 0; r < ROWS; ++r)
        for (int step = 16; step > 0; step /= 2) sum[r] += __shfl_xor_sync(~0u, sum[r], step);
    // lane r writes row r
    float own = sum[0];
    for (int r = 1; r < ROWS; ++r) own = lane == r ? sum[r] : own;
    if (lane < ROWS && first_row + lane < M) out[size_t(first_row + lane) * N + column] = own + bias[column];
}
