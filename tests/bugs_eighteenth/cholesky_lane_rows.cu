/* evoengine
name: cholesky_lane_rows
precision: fp32
summary: a warp has a matrix in shared memory and a lane a row; a column is divided by its root, then taken off the columns behind it
launches:
  - kernel: factorise
    grid: ["ceil_div(B, 4)"]
    block: [32, 4]
    args: [a, lower, B, N]
*/
constexpr int LANES = 32, MATRICES = 4;

__global__ void __launch_bounds__(LANES * MATRICES)
factorise(const float* __restrict__ a, float* __restrict__ lower, int B, int N) {
    __shared__ float matrices[MATRICES][LANES][LANES + 1];
    const int matrix = blockIdx.x * MATRICES + threadIdx.y, lane = threadIdx.x;
    if (matrix >= B) return;
    float (&rows)[LANES][LANES + 1] = matrices[threadIdx.y];
    const size_t base = size_t(matrix) * N * N;
    for (int i = lane; i < N * N; i += LANES) rows[i / N][i % N] = a[base + i];
    __syncwarp();

    for (int j = 0; j < N; ++j) {
        const float pivot = rows[j][j], root = sqrtf(pivot);
        float own = 0.0f;
        if (lane > j && lane < N) own = rows[lane][j] / root;
        if (lane == j) own = root;
        __syncwarp();   // all have read the pivot
        if (lane >= j && lane < N) rows[lane][j] = own;
        __syncwarp();   // the column is complete
        if (lane < N)
            for (int c = j + 1; c <= lane; ++c) rows[lane][c] -= own * rows[c][j];
        __syncwarp();   // the columns behind it are up to date
    }
    for (int i = lane; i < N * N; i += LANES) {
        const int r = i / N, c = i % N;
        lower[base + i] = c <= r ? rows[r][c] : 0.0f;
    }
}
