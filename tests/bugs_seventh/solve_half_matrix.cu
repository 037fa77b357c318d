/* evoengine
name: solve_half_matrix
precision: fp16
summary: a warp has a right side and adds up each row's products over its lanes; the matrix is rounded to half precision in shared memory
launches:
  - kernel: solve
    grid: ["ceil_div(R, 4)", B]
    block: [128]
    shared: 2 * N * N
    args: [a, b, x, N, R]
*/
#include <cuda_fp16.h>

__global__ void __launch_bounds__(128)
solve(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ x, int N, int R) {
    extern __shared__ half matrix[];
    const int lane = threadIdx.x % 32, column = blockIdx.x * 4 + threadIdx.x / 32;
    for (int i = threadIdx.x; i < N * N; i += 128) matrix[i] = __float2half(a[size_t(blockIdx.y) * N * N + i]);
    __syncthreads();
    if (column >= R) return;

    const size_t base = size_t(blockIdx.y) * N * R + column;
    float found[4] = {};   // of rows lane, lane + 32, ...
    for (int r = 0; r < N; ++r) {
        float sum = 0.0f;
        for (int j = 0; j < 4; ++j) {
            const int k = j * 32 + lane;
            if (k < r) sum += __half2float(matrix[r * N + k]) * found[j];
        }
        for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(~0u, sum, step);
        const float value = (b[base + size_t(r) * R] - sum) / __half2float(matrix[r * N + r]);
        if (lane == r % 32) {
            found[r / 32] = value;
            x[base + size_t(r) * R] = value;
        }
    }
}
