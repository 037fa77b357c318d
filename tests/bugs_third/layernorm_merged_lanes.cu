/* evoengine
name: layernorm_merged_lanes
precision: fp32
summary: a warp has a row; every lane runs Welford's recurrence over its columns, lanes merge by Chan's formula
launches:
  - kernel: layernorm
    grid: ["ceil_div(N, 4)"]
    block: [128]
    args: [x, weight, bias, out, N, C, eps]
*/
struct Moments {
    float count, mean, squares;
};

__device__ Moments merge(Moments a, Moments b) {
    const float count = a.count + b.count;
    if (count == 0.0f) return a;
    const float difference = b.mean - a.mean, share = b.count / count;
    Moments both;
    both.count = count;
    both.mean = a.mean + difference * share;
    both.squares = a.squares + b.squares + difference * difference * a.count * share;
    return both;
}

__global__ void layernorm(
    const float* x, const float* weight, const float* bias, float* out, int N, int C, float eps) {
    const int lane = threadIdx.x % 32, row = blockIdx.x * 4 + threadIdx.x / 32;
    if (row >= N) return;
    const float* source = x + size_t(row) * C;
    Moments own = {0.0f, 0.0f, 0.0f};
    for (int i = lane; i < C; i += 32) {
        own.count += 1.0f;
        const float before = source[i] - own.mean;
        own.mean += before / own.count;
        own.squares += before * (source[i] - own.mean);
    }
    for (int step = 16; step > 0; step /= 2) {
        Moments other;
        other.count = __shfl_down_sync(~0u, own.count, step);
        other.mean = __shfl_down_sync(~0u, own.mean, step);
        other.squares = __shfl_down_sync(~0u, own.squares, step);
        own = merge(own, other);
    }
    const float mean = __shfl_sync(~0u, own.mean, 0);
    const float variance = __shfl_sync(~0u, own.squares, 0) / C;
    const float inverse = 1.0f / sqrtf(variance + eps);
    for (int i = lane; i < C; i += 32)
        out[size_t(row) * C + i] = (source[i] - mean) * inverse * weight[i] + bias[i];
}
