#include <cuda_fp16.h>

// Two halves an instruction, one row of results an operation.
__global__ void half2_packed(const __half2* a, const __half2* b, const __half2* c, __half2* out, int pairs) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < pairs; i += gridDim.x * blockDim.x) {
        const __half2 x = a[i], y = b[i], z = c[i];
        out[0 * pairs + i] = __hsub2(x, y);
        out[1 * pairs + i] = __hfma2_relu(x, y, z);
        out[2 * pairs + i] = __hfma2_sat(x, y, z);
        out[3 * pairs + i] = __hneg2(x);
        out[4 * pairs + i] = __lowhigh2highlow(x);
        out[5 * pairs + i] = __lows2half2(x, y);
        out[6 * pairs + i] = __highs2half2(x, y);
        out[7 * pairs + i] = __low2half2(x);
        out[8 * pairs + i] = __halves2half2(__high2half(x), __low2half(y));
        out[9 * pairs + i] = __h2div(x, y);
        out[10 * pairs + i] = __hadd2_sat(x, y);
        out[11 * pairs + i] = __hmul2_sat(x, y);
    }
}
