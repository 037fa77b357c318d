/* evoengine
name: layernorm_statistics_in_globals
precision: fp32
summary: a first launch leaves each row's statistics in a global array, which the second launch reads; both run in every call
tunables:
  WARPS: [4, 8]
require:
  - N <= 4096
launches:
  - kernel: statistics
    grid: ["ceil_div(N, WARPS)"]
    block: ["32 * WARPS"]
    args: [x, N, C, eps]
  - kernel: normalise
    grid: ["ceil_div(C, 256)", N]
    block: [256]
    args: [x, weight, bias, out, C]
*/
// (mean, what the mean lost when it was rounded, 1 / standard deviation): 48 KiB
__device__ float means[4096], remainders[4096];
static __device__ float inverses[4096];

__global__ void statistics(const float* __restrict__ x, int N, int C, float eps) {
    const int row = blockIdx.x * WARPS + threadIdx.x / 32, lane = threadIdx.x % 32;
    if (row >= N) return;
    const float* in = x + (size_t)row * C;
    auto sum = [](float v) {
        for (int o = 16; o; o /= 2) v += __shfl_xor_sync(0xffffffffu, v, o);
        return v;
    };
    float s = 0.0f, d1 = 0.0f, d2 = 0.0f;
    for (int i = lane; i < C; i += 32) s += in[i];
    const float mean = sum(s) / C;
    for (int i = lane; i < C; i += 32) d1 += in[i] - mean, d2 += (in[i] - mean) * (in[i] - mean);
    d1 = sum(d1) / C;
    d2 = sum(d2) / C - d1 * d1;
    if (lane == 0) {
        means[row] = mean;
        remainders[row] = d1;
        inverses[row] = rsqrtf(fmaxf(d2, 0.0f) + eps);
    }
}

__global__ void normalise(const float* __restrict__ x, const float* __restrict__ weight, const float* __restrict__ bias, float* __restrict__ out, int C) {
    const int i = blockIdx.x * 256 + threadIdx.x, row = blockIdx.y;
    if (i < C) out[(size_t)row * C + i] = ((x[(size_t)row * C + i] - means[row]) - remainders[row]) * inverses[row] * weight[i] + bias[i];
}
