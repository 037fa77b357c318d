/* evoengine
name: cholesky_half_columns
precision: fp16
summary: a thread has a matrix; elements of its factor are found row by row and rounded to half precision, sums are in single precision
launches:
  - kernel: factorise
    grid: ["ceil_div(B, 32)"]
    block: [32]
    args: [a, lower, B, N]
*/
#include <cuda_fp16.h>

__global__ void __launch_bounds__(32)
factorise(const float* __restrict__ a, float* lower, int B, int N) {
    const int matrix = blockIdx.x * 32 + threadIdx.x;
    if (matrix >= B) return;
    const float* from = a + size_t(matrix) * N * N;
    float* to = lower + size_t(matrix) * N * N;
    for (int r = 0; r < N; ++r) {
        for (int c = 0; c <= r; ++c) {
            float rest = from[r * N + c];
            for (int k = 0; k < c; ++k) rest = fmaf(-to[r * N + k], to[c * N + k], rest);
            to[r * N + c] = __half2float(__float2half(c < r ? rest / to[c * N + c] : sqrtf(rest)));
        }
        for (int c = r + 1; c < N; ++c) to[r * N + c] = 0.0f;
    }
}
