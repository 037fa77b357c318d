/* evoengine
name: causal_conv1d
precision: fp32
summary: a block takes 128 steps of a channel into shared memory, with the three before them
launches:
  - kernel: conv1d
    grid: ["ceil_div(L, 128)", C, B]
    block: [128]
    args: [x, weight, bias, out, C, L]
*/
constexpr int STEPS = 128, HALO = 3;

__global__ void conv1d(const float* x, const float* weight, const float* bias, float* out, int C, int L) {
    __shared__ float tile[STEPS + HALO];
    const int channel = blockIdx.y, start = blockIdx.x * STEPS;
    const size_t row = (size_t(blockIdx.z) * C + channel) * L;
    for (int i = threadIdx.x; i < STEPS + HALO; i += STEPS) {
        const int t = start + i - HALO;
        tile[i] = t >= 0 && t < L ? x[row + t] : 0.0f;
    }
    __syncthreads();
    const int t = start + threadIdx.x;
    if (t >= L) return;
    float sum = bias[channel];
    for (int j = 0; j < 4; ++j) sum += weight[channel * 4 + j] * tile[threadIdx.x + j];
    out[row + t] = sum / (1.0f + expf(-sum));
}
