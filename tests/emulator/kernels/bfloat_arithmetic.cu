#include <cuda_bf16.h>

// bfloat16 operations, scalar and packed, one row each.
__global__ void bfloat_arithmetic(const __nv_bfloat16* a, const __nv_bfloat16* b, const __nv_bfloat16* c, __nv_bfloat16* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const __nv_bfloat16 x = a[i], y = b[i], z = c[i];
    out[0 * n + i] = __hadd(x, y);
    out[1 * n + i] = __hsub(x, y);
    out[2 * n + i] = __hmul(x, y);
    out[3 * n + i] = __hfma(x, y, z);
    out[4 * n + i] = __hmax(x, y);
    out[5 * n + i] = __hmin(x, y);
    out[6 * n + i] = __hneg(x);
    out[7 * n + i] = __habs(x);
    const __nv_bfloat162 xy = __halves2bfloat162(x, y), yx = __halves2bfloat162(y, x), zz = __bfloat162bfloat162(z);
    out[8 * n + i] = __high2bfloat16(__hfma2(xy, yx, zz));
    out[9 * n + i] = __low2bfloat16(__hadd2(xy, zz));
    out[10 * n + i] = __hgt(x, y) ? x : z;
    out[11 * n + i] = __high2bfloat16(__hmul2(xy, zz));
}
