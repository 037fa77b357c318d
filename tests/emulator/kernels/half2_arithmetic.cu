// Pairs of halves: fused and plain arithmetic, extremes, comparisons, packing and unpacking.
#include <cuda_fp16.h>

__global__ void half2_arithmetic(const __half2* a, const __half2* b, const __half2* c, __half2* fused, __half2* plain, __half2* extremes,
                                 float2* wide, unsigned char* less, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    __half2 x = a[i], y = b[i], z = c[i];

    fused[i] = __hfma2(x, y, z);
    plain[3 * i] = __hadd2(x, y);
    plain[3 * i + 1] = __hmul2(x, y);
    plain[3 * i + 2] = __hsub2(__hneg2(x), z);
    extremes[2 * i] = __hmax2(x, y);
    extremes[2 * i + 1] = __hmin2(__habs2(x), y);

    float2 f = __half22float2(x);
    f.x += __low2float(z);
    f.y -= __high2float(y);
    wide[i] = f;
    __half2 packed = __floats2half2_rn(f.x * 3.0f, f.y * 0.001f);
    less[2 * i] = __hlt(__low2half(x), __low2half(y));
    less[2 * i + 1] = __hge(__high2half(packed), __float2half(0.0f));
}
