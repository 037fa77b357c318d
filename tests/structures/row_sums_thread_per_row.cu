/* evoengine
name: row_sums_thread_per_row
precision: fp32
summary: a thread a row, one number a load; the lanes of a warp are a whole row apart
launches:
  - kernel: sums
    grid: ["ceil_div(N, 128)"]
    block: [128]
    args: [x, out, N, C]
*/
__global__ void __launch_bounds__(128) sums(const float* __restrict__ x, float* __restrict__ out, int N, int C) {
    const int row = blockIdx.x * 128 + threadIdx.x;
    if (row >= N) return;
    float sum = 0.0f;
    for (int i = 0; i < C; ++i) sum += x[size_t(row) * C + i];
    out[row] = sum;
}
