/* evoengine
name: rms_norm_thread_per_element
precision: fp32
summary: every thread computes one element and the sum of squares of its whole row again
launches:
  - kernel: rms_norm
    grid: ["ceil_div(N * C, 128)"]
    block: [128]
    args: [x, weight, out, N, C, eps]
*/
// As simple as can be. Four sums instead of one, because a single chain of C additions loses digits.
__global__ void rms_norm(const float* x, const float* weight, float* out, int N, int C, float eps) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= N * C) return;
    const float* row = x + i / C * C;
    float sums[4] = {0.0f, 0.0f, 0.0f, 0.0f};
    for (int j = 0; j < C; j++) sums[j % 4] += row[j] * row[j];
    float mean = (sums[0] + sums[1] + sums[2] + sums[3]) / C;
    out[i] = x[i] / sqrtf(mean + eps) * weight[i % C];
}
