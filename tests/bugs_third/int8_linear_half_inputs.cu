/* evoengine
name: int8_linear_half_inputs
precision: fp16
summary: as int8_linear_tiles, with inputs and weights rounded to half precision
launches:
  - kernel: linear
    grid: ["ceil_div(N, 32)", "ceil_div(B, 8)"]
    block: [32, 8]
    args: [x, weight, zeros, scales, bias, out, B, N, K]
*/
#include <cuda_fp16.h>

constexpr int COLUMNS = 32, ROWS = 8, GROUP = 32;

__global__ void linear(const float* x, const signed char* weight, const signed char* zeros, const float* scales,
                       const float* bias, float* out, int B, int N, int K) {
    __shared__ half weight_tile[COLUMNS][GROUP + 1];
    __shared__ half x_tile[ROWS][GROUP];
    const int tx = threadIdx.x, ty = threadIdx.y;
    const int n = blockIdx.x * COLUMNS + tx, b = blockIdx.y * ROWS + ty;
    const int groups = K / GROUP;
    float sum = 0.0f;
    for (int g = 0; g < groups; ++g) {
        for (int c = ty; c < COLUMNS; c += ROWS) {
            const int column = blockIdx.x * COLUMNS + c;
            float value = 0.0f;
            if (column < N) {
                const int q = weight[size_t(column) * K + g * GROUP + tx];
                value = float(q - zeros[column * groups + g]) * scales[column * groups + g];
            }
            weight_tile[c][tx] = __float2half(value);
        }
        x_tile[ty][tx] = __float2half(b < B ? x[size_t(b) * K + g * GROUP + tx] : 0.0f);
        __syncthreads();
        for (int i = 0; i < GROUP; ++i) sum += __half2float(x_tile[ty][i]) * __half2float(weight_tile[tx][i]);
        __syncthreads();
    }
    if (n < N && b < B) out[size_t(b) * N + n] = sum + bias[n];
}
