/* evoengine
name: layernorm_local_array
precision: fp32
summary: a warp a row, each lane's elements in a local array of 1 KiB that is indexed at run time
tunables:
  WARPS: [4, 2, 8]
require:
  - C <= 8192
launches:
  - kernel: layernorm
    grid: ["ceil_div(N, WARPS)"]
    block: ["32 * WARPS"]
    args: [x, weight, bias, out, N, C, eps]
*/
constexpr int MOST = 256;   // 8192 / 32

// Adds up n values in pairs, then pairs of pairs: the rounding errors grow with log n only. It overwrites them.
__device__ __noinline__ float pairwise(float* values, int n) {
    while (n > 1) {
        const int half = (n + 1) / 2;
        for (int i = 0; i + half < n; ++i) values[i] += values[i + half];
        n = half;
    }
    return values[0];
}

__device__ float over_warp(float v) {
    for (int lane = 1; lane < 32; lane *= 2) v += __shfl_xor_sync(0xffffffff, v, lane);
    return v;
}

__global__ void layernorm(const float* __restrict__ x, const float* __restrict__ weight, const float* __restrict__ bias,
                          float* __restrict__ out, int N, int C, float eps) {
    const int row = blockIdx.x * WARPS + threadIdx.x / 32, lane = threadIdx.x % 32;
    if (row >= N) return;
    const float* in = x + (size_t)row * C;
    float kept[MOST];
    kept[0] = 0.0f;
    int n = 0;
    for (int i = lane; i < C; i += 32) kept[n++] = in[i];
    const float mean = over_warp(pairwise(kept, n)) / C;
    for (int i = lane, j = 0; i < C; i += 32, ++j) kept[j] = in[i] - mean;
    const float rest = over_warp(pairwise(kept, n)) / C;
    for (int i = lane, j = 0; i < C; i += 32, ++j) {
        const float d = (in[i] - mean) - rest;
        kept[j] = d * d;
    }
    const float inverse = 1.0f / sqrtf(over_warp(pairwise(kept, n)) / C + eps);
    for (int i = lane; i < C; i += 32) out[(size_t)row * C + i] = ((in[i] - mean) - rest) * inverse * weight[i] + bias[i];
}
