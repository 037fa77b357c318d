#include <cuda_fp16.h>

// A warp a row that fits into registers: up to 32 * ITEMS halves; what lies beyond the row is minus infinity.
template <int ITEMS>
__global__ void softmax_half(const __half* in, __half* out, int rows, int columns) {
    const int row = blockIdx.x * blockDim.y + threadIdx.y, lane = threadIdx.x;
    if (row >= rows) return;
    float x[ITEMS], top = __int_as_float(0xff800000);
#pragma unroll
    for (int i = 0; i < ITEMS; ++i) {
        const int c = i * 32 + lane;
        x[i] = c < columns ? __half2float(in[row * columns + c]) : __int_as_float(0xff800000);
        top = fmaxf(top, x[i]);
    }
#pragma unroll
    for (int mask = 16; mask; mask >>= 1) top = fmaxf(top, __shfl_xor_sync(0xffffffff, top, mask, 32));
    float sum = 0.0f;
#pragma unroll
    for (int i = 0; i < ITEMS; ++i) {
        x[i] = __expf(x[i] - top);
        sum += x[i];
    }
#pragma unroll
    for (int mask = 16; mask; mask >>= 1) sum += __shfl_xor_sync(0xffffffff, sum, mask, 32);
#pragma unroll
    for (int i = 0; i < ITEMS; ++i) {
        const int c = i * 32 + lane;
        if (c < columns) out[row * columns + c] = __float2half(x[i] / sum);
    }
}
