#include <cuda_fp16.h>

// Each operation writes a row of its own, so that no product can be contracted with a sum.
__global__ void half_arithmetic(const __half* a, const __half* b, const __half* c, __half* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const __half x = a[i], y = b[i], z = c[i];
    out[0 * n + i] = __hadd(x, y);
    out[1 * n + i] = __hsub(x, y);
    out[2 * n + i] = __hmul(x, y);
    out[3 * n + i] = __hdiv(x, y);
    out[4 * n + i] = __hfma(x, y, z);
    out[5 * n + i] = __hneg(x);
    out[6 * n + i] = __habs(x);
    out[7 * n + i] = __hmax(x, y);
    out[8 * n + i] = __hmin(x, y);
    out[9 * n + i] = __hadd_sat(x, y);
    out[10 * n + i] = __hmul_sat(x, y);
    out[11 * n + i] = __hfma_sat(x, y, z);
    out[12 * n + i] = __hfma_relu(x, y, z);
}
