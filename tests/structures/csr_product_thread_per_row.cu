/* evoengine
name: csr_product_thread_per_row
precision: fp32
summary: a thread a row of as many numbers as it has, so that the lanes of a warp read far apart and end at different times
launches:
  - kernel: multiply
    grid: ["ceil_div(R, 128)"]
    block: [128]
    args: [offsets, columns, values, x, out, R]
*/
__global__ void __launch_bounds__(128)
multiply(const int* __restrict__ offsets, const int* __restrict__ columns, const float* __restrict__ values, const float* __restrict__ x, float* __restrict__ out, int R) {
    const int row = blockIdx.x * 128 + threadIdx.x;
    if (row >= R) return;
    const int end = offsets[row + 1];
    float sum = 0.0f;
    for (int at = offsets[row]; at < end; ++at) sum += values[at] * x[columns[at]];
    out[row] = sum;
}
