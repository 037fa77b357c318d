#include <cuda_fp16.h>

__device__ float block_sum(float x, float* parts) {
    for (int o = 16; o; o >>= 1) x += __shfl_xor_sync(0xffffffff, x, o);
    __syncthreads();    // parts may still be read
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = x;
    __syncthreads();
    float sum = 0.0f;
    for (int w = 0; w < blockDim.x / 32; ++w) sum += parts[w];
    return sum;
}

// A block a group of channels of one image: mean, variance in a second pass, scale and shift a channel, then SiLU.
__global__ void group_norm(const __half* in, const __half* weight, const __half* bias, __half* out,
                           int channels, int groups, int pixels, float eps) {
    __shared__ float parts[8];
    const int a_group = channels / groups, count = a_group * pixels;
    const size_t first = (size_t(blockIdx.y) * groups + blockIdx.x) * count;
    float sum = 0.0f, squares = 0.0f;
    for (int i = threadIdx.x; i < count; i += blockDim.x) sum += __half2float(in[first + i]);
    const float mean = block_sum(sum, parts) / count;
    for (int i = threadIdx.x; i < count; i += blockDim.x) {
        const float d = __half2float(in[first + i]) - mean;
        squares += d * d;
    }
    const float inverse = rsqrtf(block_sum(squares, parts) / count + eps);
    for (int i = threadIdx.x; i < count; i += blockDim.x) {
        const int channel = blockIdx.x * a_group + i / pixels;
        const float y = (__half2float(in[first + i]) - mean) * inverse * __half2float(weight[channel]) + __half2float(bias[channel]);
        out[first + i] = __float2half(y / (1.0f + __expf(-y)));
    }
}
