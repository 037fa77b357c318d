/* evoengine
name: layernorm_thread_per_row
precision: fp32
summary: one thread a row, three plain loops, compensated sums
launches:
  - kernel: layernorm
    grid: ["ceil_div(N, 64)"]
    block: [64]
    args: [x, weight, bias, out, N, C, eps]
*/
// The loops of a CPU, one row for each thread. A sum of thousands of terms in one chain loses digits, so each
// addition keeps what it rounded away (Kahan).
__device__ void add(float& sum, float& lost, float term) {
    float y = term - lost;
    float t = sum + y;
    lost = (t - sum) - y;
    sum = t;
}

__global__ void layernorm(const float* x, const float* weight, const float* bias, float* out, int N, int C, float eps) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= N) return;
    x += (size_t)row * C;
    out += (size_t)row * C;

    const float base = x[0];   // deviations from any element of the row are small where the mean is large
    float sum = 0, lost = 0;
    for (int i = 0; i < C; i++) add(sum, lost, x[i] - base);
    float mean = sum / C;

    float squares = 0;
    lost = 0;
    for (int i = 0; i < C; i++) {
        float d = (x[i] - base) - mean;
        add(squares, lost, d * d);
    }
    float scale = 1.0f / sqrtf(squares / C + eps);

    for (int i = 0; i < C; i++) out[i] = ((x[i] - base) - mean) * scale * weight[i] + bias[i];
}
