#include <cuda_fp16.h>

// Scattered additions of halves and of pairs; small integers, so that the order does not matter.
__global__ void half_atomic_sum(const int* bin, const __half* weight, __half* bins, __half2* pair_bins, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    atomicAdd(&bins[bin[i]], weight[i]);
    atomicAdd(&pair_bins[bin[i]], __halves2half2(weight[i], __float2half(1.0f)));
}
