#include <cuda_fp16.h>

// float to half in the four rounding modes; the result is compared bit by bit.
__global__ void half_from_float(const float* in, unsigned short* out, __half* from_double, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const float x = in[i];
    out[0 * n + i] = __half_as_ushort(__float2half(x));
    out[1 * n + i] = __half_as_ushort(__float2half_rn(x));
    out[2 * n + i] = __half_as_ushort(__float2half_rz(x));
    out[3 * n + i] = __half_as_ushort(__float2half_ru(x));
    out[4 * n + i] = __half_as_ushort(__float2half_rd(x));
    const __half2 pair = __floats2half2_rn(x, -x), twin = __float2half2_rn(x);
    out[5 * n + i] = __half_as_ushort(__high2half(pair));
    out[6 * n + i] = __half_as_ushort(__low2half(twin));
    from_double[i] = __double2half(double(x) * (1.0 + 1e-9));    // not a float: rounding twice would show at a tie
}
