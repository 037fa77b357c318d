/* evoengine
name: csr_product_warp_rows
precision: fp32
summary: a warp a row, whose lanes gather the numbers of the vector that the row needs
launches:
  - kernel: multiply
    grid: ["ceil_div(R, 8)"]
    block: [256]
    args: [offsets, columns, values, x, out, R]
*/
__global__ void __launch_bounds__(256)
multiply(const int* __restrict__ offsets, const int* __restrict__ columns, const float* __restrict__ values, const float* __restrict__ x, float* __restrict__ out, int R) {
    const int row = blockIdx.x * 8 + threadIdx.x / 32, lane = threadIdx.x % 32;
    if (row >= R) return;
    const int end = offsets[row + 1];
    float sum = 0.0f;
    for (int at = offsets[row] + lane; at < end; at += 32) sum += values[at] * x[columns[at]];
#pragma unroll
    for (int step = 16; step; step /= 2) sum += __shfl_xor_sync(~0u, sum, step);
    if (lane == 0) out[row] = sum;
}
