#include <cuda_fp16.h>

// Rounding to integral halves, and what an integer makes of a half in every rounding mode.
__global__ void half_rounding(const __half* in, __half* integral, int* integers, unsigned short* shorts, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const __half x = in[i];
    integral[0 * n + i] = hceil(x);
    integral[1 * n + i] = hfloor(x);
    integral[2 * n + i] = htrunc(x);
    integral[3 * n + i] = hrint(x);
    integers[0 * n + i] = __half2int_rn(x);
    integers[1 * n + i] = __half2int_rz(x);
    integers[2 * n + i] = __half2int_ru(x);
    integers[3 * n + i] = __half2int_rd(x);
    integers[4 * n + i] = int(__half2uint_rz(x));
    shorts[0 * n + i] = (unsigned short)__half2short_rz(x);
    shorts[1 * n + i] = __half2ushort_rn(x);
    shorts[2 * n + i] = __half_as_ushort(x);
}
