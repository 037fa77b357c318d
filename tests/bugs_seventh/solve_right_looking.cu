/* evoengine
name: solve_right_looking
precision: fp32
summary: a block has eight right sides in shared memory; each solved row is subtracted from all rows below it
launches:
  - kernel: solve
    grid: ["ceil_div(R, 8)", B]
    block: [128]
    args: [a, b, x, N, R]
*/
constexpr int SIDES = 8, ROWS = 128 / SIDES;

__global__ void __launch_bounds__(128)
solve(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ x, int N, int R) {
    __shared__ float sides[128][SIDES];
    const int c = threadIdx.x % SIDES, own = threadIdx.x / SIDES;
    const int column = blockIdx.x * SIDES + c;
    const float* matrix = a + size_t(blockIdx.y) * N * N;
    const size_t base = size_t(blockIdx.y) * N * R;

    for (int r = own; r < N; r += ROWS) sides[r][c] = column < R ? b[base + size_t(r) * R + column] : 0.0f;
    __syncthreads();
    for (int k = 0; k < N; ++k) {
        if (own == 0) sides[k][c] /= matrix[k * N + k];
        __syncthreads();
        const float solved = sides[k][c];
        for (int r = k + 1 + own; r < N; r += ROWS) sides[r][c] -= matrix[r * N + k] * solved;
        __syncthreads();
    }
    if (column < R)
        for (int r = own; r < N; r += ROWS) x[base + size_t(r) * R + column] = sides[r][c];
}
