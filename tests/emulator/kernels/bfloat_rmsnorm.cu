#include <cuda_bf16.h>

// The norm of a language model's layer: bfloat16 in pairs, sums in float, residual added first and stored back.
__global__ void bfloat_rmsnorm(__nv_bfloat162* residual, const __nv_bfloat162* in, const __nv_bfloat162* weight, __nv_bfloat162* out,
                               int pairs, float eps) {
    __shared__ float shared_sum;
    if (threadIdx.x == 0) shared_sum = 0.0f;
    __syncthreads();
    const int first = blockIdx.x * pairs;
    float sum = 0.0f;
    for (int i = threadIdx.x; i < pairs; i += blockDim.x) {
        const __nv_bfloat162 x = __hadd2(residual[first + i], in[first + i]);
        residual[first + i] = x;
        const float low = __low2float(x), high = __high2float(x);
        sum += low * low + high * high;
    }
    for (int offset = 16; offset > 0; offset >>= 1) sum += __shfl_down_sync(0xffffffff, sum, offset);
    if (threadIdx.x % 32 == 0) atomicAdd(&shared_sum, sum);
    __syncthreads();
    const float inverse = rsqrtf(shared_sum / float(2 * pairs) + eps);
    for (int i = threadIdx.x; i < pairs; i += blockDim.x) {
        const float2 x = __bfloat1622float2(residual[first + i]), w = __bfloat1622float2(weight[i]);
        out[first + i] = __float22bfloat162_rn(make_float2(x.x * inverse * w.x, x.y * inverse * w.y));
    }
}
