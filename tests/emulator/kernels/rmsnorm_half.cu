#include <cuda_fp16.h>

// Halves in, floats out: x / sqrt(mean(x^2) + eps) * weight. A block a row, pairs of halves.
__global__ void rmsnorm_half(const __half2* in, const __half2* weight, float2* out, int pairs, float eps) {
    __shared__ float parts[32];
    const __half2* row = in + blockIdx.x * pairs;
    float sum = 0.0f;
    for (int i = threadIdx.x; i < pairs; i += blockDim.x) {
        const float2 x = __half22float2(row[i]);
        sum += x.x * x.x + x.y * x.y;
    }
    for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_down_sync(0xffffffff, sum, offset);
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x < 32) {
        sum = threadIdx.x < blockDim.x / 32 ? parts[threadIdx.x] : 0.0f;
        for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_down_sync(0xffffffff, sum, offset);
        if (threadIdx.x == 0) parts[0] = rsqrtf(sum / (2 * pairs) + eps);
    }
    __syncthreads();
    const float inverse = parts[0];
    for (int i = threadIdx.x; i < pairs; i += blockDim.x) {
        const float2 x = __half22float2(row[i]), w = __half22float2(__ldg(&weight[i]));
        out[blockIdx.x * pairs + i] = make_float2(x.x * inverse * w.x, x.y * inverse * w.y);
    }
}
