/* evoengine
name: column_sums_compensated
precision: fp32
summary: a thread a column of a slice of 64 rows, each sum with the error that it carries along (Kahan), and a second launch over the slices
let:
  ROWS: 64
  SLICES: ceil_div(L, ROWS)
scratch:
  parts: {dtype: float32, shape: [SLICES, N]}
launches:
  - kernel: sums
    grid: ["ceil_div(N, 256)", SLICES]
    block: [256]
    args: [x, parts, L, N, ROWS]
  - kernel: sums
    grid: ["ceil_div(N, 256)"]
    block: [256]
    args: [parts, out, SLICES, N, SLICES]
*/
__global__ void __launch_bounds__(256) sums(const float* __restrict__ x, float* __restrict__ out, int L, int N, int rows) {
    const int column = blockIdx.x * 256 + threadIdx.x;
    if (column >= N) return;
    const int first = blockIdx.y * rows, end = min(first + rows, L);
    float sum = 0.0f, lost = 0.0f;
    for (int row = first; row < end; ++row) {
        const float more = __fsub_rn(x[size_t(row) * N + column], lost);
        const float next = __fadd_rn(sum, more);
        lost = __fsub_rn(__fsub_rn(next, sum), more);
        sum = next;
    }
    out[size_t(blockIdx.y) * N + column] = sum;
}
