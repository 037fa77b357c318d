/* evoengine
name: int8_linear_warps
precision: fp32
summary: a warp has one column of the result for four rows of x; a lane takes four weights at a time
launches:
  - kernel: linear
    grid: ["ceil_div(N, 4)", "ceil_div(B, 4)"]
    block: [128]
    args: [x, weight, zeros, scales, bias, out, B, N, K]
*/
constexpr int ROWS = 4, GROUP = 32;

__global__ void linear(const float* x, const signed char* weight, const signed char* zeros, const float* scales,
                       const float* bias, float* out, int B, int N, int K) {
    const int lane = threadIdx.x % 32, n = blockIdx.x * 4 + threadIdx.x / 32;
    if (n >= N) return;
    const int first = blockIdx.y * ROWS, groups = K / GROUP;
    const char4* packs = reinterpret_cast<const char4*>(weight + size_t(n) * K);
    float sums[ROWS] = {};
    for (int p = lane; p < K / 4; p += 32) {
        const int group = p * 4 / GROUP;
        const float scale = scales[n * groups + group];
        const int zero = zeros[n * groups + group];
        const char4 pack = packs[p];
        const float w0 = (pack.x - zero) * scale, w1 = (pack.y - zero) * scale;
        const float w2 = (pack.z - zero) * scale, w3 = (pack.w - zero) * scale;
        for (int r = 0; r < ROWS; ++r) {
            if (first + r >= B) break;
            const float4 in = reinterpret_cast<const float4*>(x + size_t(first + r) * K)[p];
            sums[r] += in.x * w0 + in.y * w1 + in.z * w2 + in.w * w3;
        }
    }
    for (int r = 0; r < ROWS; ++r) {
        float sum = sums[r];
        for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(~0u, sum, step);
        if (lane == 0 && first + r < B) out[size_t(first + r) * N + n] = sum + bias[n];
    }
}
