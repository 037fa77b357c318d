/* evoengine
name: layernorm_asserts_and_prints
precision: fp32
summary: debugging left in - asserts that hold, a print that is never reached, a clock that is read and not used
tunables:
  THREADS: [128, 256]
launches:
  - kernel: layernorm
    grid: [N]
    block: [THREADS]
    args: [x, weight, bias, out, N, C, eps]
*/
#include <assert.h>
#include <stdio.h>

__device__ float reduce(float v, float* scratch) {
    scratch[threadIdx.x] = v;
    __syncthreads();
    for (int n = THREADS / 2; n > 0; n >>= 1) {
        if (threadIdx.x < n) scratch[threadIdx.x] += scratch[threadIdx.x + n];
        __syncthreads();
    }
    v = scratch[0];
    __syncthreads();
    return v;
}

__global__ void layernorm(const float* x, const float* weight, const float* bias, float* out, int N, int C, float eps) {
    __shared__ float scratch[THREADS];
    assert(blockDim.x == THREADS);
    assert(C > 0 && N > 0);
    const long long started = clock64();
    const size_t at = (size_t)blockIdx.x * C;

    float sum = 0;
    for (int i = threadIdx.x; i < C; i += THREADS) sum += x[at + i];
    const float mean = reduce(sum, scratch) / C;
    float rest = 0, squares = 0;
    for (int i = threadIdx.x; i < C; i += THREADS) {
        const float d = x[at + i] - mean;
        rest += d;
        squares += d * d;
    }
    rest = reduce(rest, scratch) / C;
    const float variance = reduce(squares, scratch) / C - rest * rest;
    if (variance < -1.0f) printf("row %d: negative variance %f\n", blockIdx.x, variance);
    const float rstd = 1.0f / sqrtf(fmaxf(variance, 0.0f) + eps);
    assert(rstd > 0.0f);
    for (int i = threadIdx.x; i < C; i += THREADS) out[at + i] = (x[at + i] - mean - rest) * rstd * weight[i] + bias[i];

    const long long cycles = clock64() - started;
    if (cycles < 0) printf("block %d: the clock went backwards\n", blockIdx.x);
}
