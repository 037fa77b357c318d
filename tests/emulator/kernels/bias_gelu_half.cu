#include <cuda_fp16.h>

__device__ __forceinline__ float gelu_tanh(float x) { return 0.5f * x * (1.0f + tanhf(0.7978845608f * (x + 0.044715f * x * x * x))); }

// gelu(x + bias) and its residual, eight halves a thread by one 16-byte load; the rest of a row one by one.
__global__ void bias_gelu_half(const __half* x, const __half* bias, const __half* residual, __half* out, int columns) {
    const size_t row = size_t(blockIdx.y) * columns;
    const int first = (blockIdx.x * blockDim.x + threadIdx.x) * 8;
    if (first >= columns) return;
    if (columns % 8 == 0) {
        const uint4 raw = *reinterpret_cast<const uint4*>(x + row + first);
        const uint4 raw_bias = *reinterpret_cast<const uint4*>(bias + first);
        const __half2* pairs = reinterpret_cast<const __half2*>(&raw);
        const __half2* bias_pairs = reinterpret_cast<const __half2*>(&raw_bias);
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const float2 sum = __half22float2(__hadd2(pairs[i], bias_pairs[i]));
            const __half2 active = __floats2half2_rn(gelu_tanh(sum.x), gelu_tanh(sum.y));
            const __half2 other = *reinterpret_cast<const __half2*>(residual + row + first + 2 * i);
            *reinterpret_cast<__half2*>(out + row + first + 2 * i) = __hadd2(active, other);
        }
    } else {
        for (int c = first; c < min(first + 8, columns); ++c)
            out[row + c] = __hadd(__float2half(gelu_tanh(__half2float(__hadd(x[row + c], bias[c])))), residual[row + c]);
    }
}
