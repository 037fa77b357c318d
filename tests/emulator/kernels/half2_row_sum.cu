#include <cuda_fp16.h>

// One warp sums a row as packed halves: the shuffle moves two halves at once.
__global__ void half2_row_sum(const __half2* in, float* out, __half2* packed, int rows, int pairs) {
    const int row = blockIdx.x * blockDim.y + threadIdx.y;
    if (row >= rows) return;
    __half2 sum = __float2half2_rn(0.0f);
    for (int i = threadIdx.x; i < pairs; i += 32) sum = __hadd2(sum, in[row * pairs + i]);
    for (int offset = 16; offset > 0; offset >>= 1) sum = __hadd2(sum, __shfl_down_sync(0xffffffff, sum, offset));
    if (threadIdx.x == 0) {
        packed[row] = sum;
        out[row] = __low2float(sum) + __high2float(sum);
    }
}
