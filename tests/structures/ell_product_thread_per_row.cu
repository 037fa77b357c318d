/* evoengine
name: ell_product_thread_per_row
precision: fp32
summary: a thread a row; columns and numbers are read side by side, the vector is gathered
launches:
  - kernel: multiply
    grid: ["ceil_div(R, 128)"]
    block: [128]
    args: [columns, values, x, out, R, W]
*/
__global__ void __launch_bounds__(128)
multiply(const int* __restrict__ columns, const float* __restrict__ values, const float* __restrict__ x, float* __restrict__ out, int R, int W) {
    const int row = blockIdx.x * 128 + threadIdx.x;
    if (row >= R) return;
    float sum = 0.0f;
    for (int i = 0; i < W; ++i) sum += values[size_t(i) * R + row] * x[columns[size_t(i) * R + row]];
    out[row] = sum;
}
