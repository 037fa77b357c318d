// RMS normalisation of rows of halves, accumulated in float, two elements with one load.
#include <cuda_fp16.h>

template <int THREADS>
__global__ void __launch_bounds__(THREADS) rmsnorm(const __half* __restrict__ x, const __half* __restrict__ weight, __half* __restrict__ out,
                                                   int hidden, float eps) {
    __shared__ float partial[THREADS / 32];
    __shared__ float scale;
    const __half2* row = reinterpret_cast<const __half2*>(x + (size_t)blockIdx.x * hidden);
    const __half2* w = reinterpret_cast<const __half2*>(weight);
    __half2* o = reinterpret_cast<__half2*>(out + (size_t)blockIdx.x * hidden);

    float ss = 0.0f;
    for (int i = threadIdx.x; i < hidden / 2; i += THREADS) {
        float2 v = __half22float2(row[i]);
        ss = fmaf(v.x, v.x, ss);
        ss = fmaf(v.y, v.y, ss);
    }
    for (int d = 16; d; d >>= 1) ss += __shfl_xor_sync(~0u, ss, d);
    if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = ss;
    __syncthreads();
    if (threadIdx.x == 0) {
        float total = 0.0f;
        for (int i = 0; i < THREADS / 32; ++i) total += partial[i];
        scale = rsqrtf(total / (float)hidden + eps);
    }
    __syncthreads();
    for (int i = threadIdx.x; i < hidden / 2; i += THREADS) {
        float2 v = __half22float2(row[i]), g = __half22float2(w[i]);
        o[i] = __floats2half2_rn(v.x * scale * g.x, v.y * scale * g.y);
    }
}
