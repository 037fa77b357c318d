/* evoengine
name: layernorm_two_launches
precision: fp32
summary: a block of 256 finds mean and inverse deviation of a row, a second launch of 2D blocks applies them
scratch:
  statistics: {shape: [N, 2], dtype: float32}
launches:
  - kernel: measure
    grid: [N]
    block: [256]
    args: [x, statistics, C, eps]
  - kernel: apply
    grid: ["ceil_div(C, 64)", "ceil_div(N, 8)"]
    block: [64, 4]
    args: [x, statistics, weight, bias, out, N, C]
*/
constexpr int THREADS = 256, WARPS = 8;

// The sum of all threads' values, in every thread.
__device__ float block_sum(float x, float* totals) {
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    for (int step = 16; step > 0; step /= 2) x += __shfl_down_sync(~0u, x, step);
    __syncthreads();  // the totals of the call before have been read
    if (lane == 0) totals[warp] = x;
    __syncthreads();
    float sum = 0.0f;
    for (int w = 0; w < WARPS; ++w) sum += totals[w];
    return sum;
}

__global__ void measure(const float* x, float* statistics, int C, float eps) {
    __shared__ float totals[WARPS];
    const float* row = x + size_t(blockIdx.x) * C;
    float sum = 0.0f;
    for (int i = threadIdx.x; i < C; i += THREADS) sum += row[i];
    const float mean = block_sum(sum, totals) / C;
    float squares = 0.0f;
    for (int i = threadIdx.x; i < C; i += THREADS) squares += (row[i] - mean) * (row[i] - mean);
    const float variance = block_sum(squares, totals) / C;
    if (threadIdx.x == 0) {
        statistics[2 * blockIdx.x] = mean;
        statistics[2 * blockIdx.x + 1] = rsqrtf(variance + eps);
    }
}

__global__ void apply(
    const float* x, const float* statistics, const float* weight, const float* bias, float* out, int N, int C) {
    const int column = blockIdx.x * 64 + threadIdx.x;
    if (column >= C) return;
    const float gain = weight[column], shift = bias[column];
    for (int turn = 0; turn < 2; ++turn) {
        const int row = blockIdx.y * 8 + turn * 4 + threadIdx.y;
        if (row >= N) break;
        const float mean = statistics[2 * row], inverse = statistics[2 * row + 1];
        const size_t at = size_t(row) * C + column;
        out[at] = (x[at] - mean) * inverse * gain + shift;
    }
}
