#include <cuda_fp16.h>

// Halves as if they were floats: operators, conversions from and to numbers, comparisons. The sums may be fused.
__global__ void half_operators(const half* x, half* y, half alpha, int n) {
    const half zero = __float2half(0.0f), limit = half(2.5f);
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x) {
        half v = alpha * x[i] + y[i];
        if (v < zero) v = -v;
        v += half(1);
        v -= half(0.5);
        v *= half(2);
        if (v >= limit) v = limit + (v - limit) / half(4);
        y[i] = v;
    }
}
