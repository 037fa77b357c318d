#include <cuda_bf16.h>

// float to bfloat16 in the four rounding modes, and back.
__global__ void bfloat_convert(const float* in, unsigned short* out, float* back, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const float x = in[i];
    out[0 * n + i] = __bfloat16_as_ushort(__float2bfloat16(x));
    out[1 * n + i] = __bfloat16_as_ushort(__float2bfloat16_rn(x));
    out[2 * n + i] = __bfloat16_as_ushort(__float2bfloat16_rz(x));
    out[3 * n + i] = __bfloat16_as_ushort(__float2bfloat16_ru(x));
    out[4 * n + i] = __bfloat16_as_ushort(__float2bfloat16_rd(x));
    const __nv_bfloat162 pair = __floats2bfloat162_rn(x, x * 2.0f);
    out[5 * n + i] = __bfloat16_as_ushort(__high2bfloat16(pair));
    back[0 * n + i] = __bfloat162float(__float2bfloat16_rn(x));
    back[1 * n + i] = __low2float(pair);
}
