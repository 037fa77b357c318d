/* evoengine
name: cubes_thread_per_matrix
precision: fp32
summary: a thread a matrix and its square in 200 registers, of which it has 128, and the rest spills
launches:
  - kernel: cube
    grid: ["ceil_div(B, 128)"]
    block: [128]
    args: [x, out, B]
*/
__global__ void __launch_bounds__(128, 4) cube(const float* __restrict__ x, float* __restrict__ out, int B) {
    const int own = blockIdx.x * 128 + threadIdx.x;
    if (own >= B) return;
    float matrix[10][10], square[10][10];
#pragma unroll
    for (int i = 0; i < 100; ++i) matrix[i / 10][i % 10] = x[size_t(i) * B + own];
#pragma unroll
    for (int i = 0; i < 10; ++i)
#pragma unroll
        for (int j = 0; j < 10; ++j) {
            float sum = 0.0f;
#pragma unroll
            for (int k = 0; k < 10; ++k) sum += matrix[i][k] * matrix[k][j];
            square[i][j] = sum;
        }
#pragma unroll
    for (int i = 0; i < 10; ++i)
#pragma unroll
        for (int j = 0; j < 10; ++j) {
            float sum = 0.0f;
#pragma unroll
            for (int k = 0; k < 10; ++k) sum += square[i][k] * matrix[k][j];
            out[size_t(i * 10 + j) * B + own] = sum;
        }
}
