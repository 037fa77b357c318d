/* evoengine
name: int8_linear_dp4a
precision: int8
summary: groups of 32 inputs are rounded to 8 bits with a scale of their own, then multiplied four at a time in integers
scratch:
  codes: {shape: [B, K], dtype: int8}
  steps: {shape: [B, K // 32], dtype: float32}
  code_sums: {shape: [B, K // 32], dtype: int32}
launches:
  - kernel: encode
    grid: ["ceil_div(K // 32, 4)", B]
    block: [128]
    args: [x, codes, steps, code_sums, K]
  - kernel: linear
    grid: ["ceil_div(N, 64)", B]
    block: [64]
    args: [codes, steps, code_sums, weight, zeros, scales, bias, out, N, K]
*/
constexpr int GROUP = 32;

// A warp rounds one group: code = x / step, where step is the largest magnitude over 127.
__global__ void encode(const float* x, signed char* codes, float* steps, int* code_sums, int K) {
    const int lane = threadIdx.x % 32, group = blockIdx.x * 4 + threadIdx.x / 32, groups = K / GROUP;
    if (group >= groups) return;
    const size_t at = size_t(blockIdx.y) * K + group * GROUP + lane;
    float largest = fabsf(x[at]);
    for (int step = 16; step > 0; step /= 2) largest = fmaxf(largest, __shfl_xor_sync(~0u, largest, step));
    const float step_size = largest / 127.0f;
    const int code = largest > 0.0f ? __float2int_rn(x[at] / step_size) : 0;
    codes[at] = code;
    int sum = code;
    for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(~0u, sum, step);
    if (lane == 0) {
        steps[blockIdx.y * groups + group] = step_size;
        code_sums[blockIdx.y * groups + group] = sum;
    }
}

__global__ void linear(const signed char* codes, const float* steps, const int* code_sums, const signed char* weight,
                       const signed char* zeros, const float* scales, const float* bias, float* out, int N, int K) {
    const int n = blockIdx.x * 64 + threadIdx.x, b = blockIdx.y, groups = K / GROUP;
    if (n >= N) return;
    const int* left = reinterpret_cast<const int*>(codes + size_t(b) * K);
    const int* right = reinterpret_cast<const int*>(weight + size_t(n) * K);
    float sum = bias[n];
    for (int g = 0; g < groups; ++g) {
        int dot = 0;
        for (int i = 0; i < GROUP / 4; ++i) dot = __dp4a(left[g * 8 + i], right[g * 8 + i], dot);
        dot -= zeros[n * groups + g] * code_sums[b * groups + g];
        sum += float(dot) * scales[n * groups + g] * steps[b * groups + g];
    }
    out[size_t(b) * N + n] = sum;
}
