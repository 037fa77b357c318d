/* evoengine
name: layernorm_sixteen_lanes
precision: fp32
summary: 16 lanes have a row, two rows share a warp; sums and squares in one pass, less the row's first element
launches:
  - kernel: layernorm
    grid: ["ceil_div(N, 8)"]
    block: [16, 8]
    args: [x, weight, bias, out, N, C, eps]
*/
__device__ float row_sum(float value) {
    for (int step = 8; step > 0; step /= 2) value += __shfl_xor_sync(~0u, value, step);
    return value;
}

__global__ void layernorm(const float* x, const float* weight, const float* bias, float* out, int N, int C, float eps) {
    const int lane = threadIdx.x, place = blockIdx.x * 8 + threadIdx.y;
    const float* row = x + size_t(min(place, N - 1)) * C;
    const float shift = row[0];
    float sum = 0.0f, squares = 0.0f;
    for (int i = lane; i < C; i += 16) {
        const float value = row[i] - shift;
        sum += value;
        squares += value * value;
    }
    const float offset = row_sum(sum) / C;
    const float variance = row_sum(squares) / C - offset * offset;
    const float mean = shift + offset, inverse = rsqrtf(fmaxf(variance, 0.0f) + eps);
    if (place >= N) return;
    float* result = out + size_t(place) * C;
    for (int i = lane; i < C; i += 16) result[i] = (row[i] - mean) * inverse * weight[i] + bias[i];
}
