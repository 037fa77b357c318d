/* evoengine
name: sparse_lane_outputs
precision: fp32
summary: a lane has one output column and four rows; the inputs of 16 rows lie in shared memory, a word of places serves eight groups
launches:
  - kernel: product
    grid: ["ceil_div(N, 32)", "ceil_div(M, 16)"]
    block: [128]
    args: [x, values, places, bias, out, M, N, K]
*/
constexpr int ROWS = 16, DEPTH = 64, PITCH = DEPTH + 4, OWN = 4;

__global__ void __launch_bounds__(128)
product(const float* __restrict__ x, const float* __restrict__ values, const unsigned char* __restrict__ places,
        const float* __restrict__ bias, float* __restrict__ out, int M, int N, int K) {
    __shared__ __align__(16) float tile[ROWS * PITCH];
    const int warp = threadIdx.x / 32, n = blockIdx.x * 32 + threadIdx.x % 32, first = blockIdx.y * ROWS;
    const int column = min(n, N - 1);
    float sum[OWN] = {};
    for (int depth = 0; depth < K; depth += DEPTH) {
        __syncthreads();
        for (int i = threadIdx.x; i < ROWS * DEPTH / 4; i += 128) {
            const int r = i / (DEPTH / 4), c = i % (DEPTH / 4) * 4;
            float4 piece = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
            if (first + r < M && depth + c < K)
                piece = *reinterpret_cast<const float4*>(x + size_t(first + r) * K + depth + c);
            *reinterpret_cast<float4*>(tile + r * PITCH + c) = piece;
        }
        __syncthreads();
        for (int from = 0; from < DEPTH && depth + from < K; from += 32) {
            const size_t at = size_t(column) * K + depth + from;
            const unsigned word = *reinterpret_cast<const unsigned*>(places + at / 8);
            for (int g = 0; g < 8; ++g) {
                const float2 kept = *reinterpret_cast<const float2*>(values + at / 2 + g * 2);
                const int one = word >> (g * 4) & 3, two = word >> (g * 4 + 2) & 3;
                for (int r = 0; r < OWN; ++r) {
                    const float* group = tile + (warp * OWN + r) * PITCH + from + g * 4;
                    sum[r] += kept.x * group[one] + kept.y * group[two];
                }
            }
        }
    }
    for (int r = 0; r < OWN; ++r) {
        const int m = first + warp * OWN + r;
        if (m < M && n < N) out[size_t(m) * N + n] = sum[r] + bias[n];
    }
}
