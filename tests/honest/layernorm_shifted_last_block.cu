/* evoengine
name: layernorm_shifted_last_block
precision: fp32
summary: eight rows a block, a warp each; the last block begins eight rows before the end, so some rows are written by two blocks, with the same values
launches:
  - kernel: layernorm
    grid: ["ceil_div(N, 8)"]
    block: [256]
    args: [x, weight, bias, out, N, C, eps]
*/
__device__ float warp_sum(float v) {
    for (int o = 16; o; o /= 2) v += __shfl_xor_sync(~0u, v, o);
    return v;
}

// A value of the row that is no outlier, the median of three: differences from it have no large common part.
__device__ float origin_of(const float* row, int C) {
    const float a = row[0], b = row[C / 2], c = row[C - 1];
    return fmaxf(fminf(a, b), fminf(fmaxf(a, b), c));
}

__global__ void __launch_bounds__(256)
layernorm(const float* __restrict__ x, const float* __restrict__ weight, const float* __restrict__ bias, float* __restrict__ out,
          int N, int C, float eps) {
    const int lane = threadIdx.x % 32, first = max(0, min(int(blockIdx.x) * 8, N - 8)), r = first + threadIdx.x / 32;
    if (r >= N) return;
    const float* row = x + size_t(r) * C;
    const float origin = origin_of(row, C);
    float sum = 0.0f, squares = 0.0f;
    for (int i = lane; i < C; i += 32) sum += row[i] - origin;
    const float mean = warp_sum(sum) / C;
    for (int i = lane; i < C; i += 32) squares += ((row[i] - origin) - mean) * ((row[i] - origin) - mean);
    const float scale = rsqrtf(warp_sum(squares) / C + eps);
    for (int i = lane; i < C; i += 32) out[size_t(r) * C + i] = ((row[i] - origin) - mean) * scale * weight[i] + bias[i];
}
