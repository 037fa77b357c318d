#include <cuda_fp16.h>

// The half math functions, one row each.
__global__ void half_functions(const __half* in, __half* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const __half x = in[i], a = __habs(x);
    out[0 * n + i] = hexp(x);
    out[1 * n + i] = hexp2(x);
    out[2 * n + i] = hexp10(x);
    out[3 * n + i] = hlog(a);
    out[4 * n + i] = hlog2(a);
    out[5 * n + i] = hlog10(a);
    out[6 * n + i] = hsqrt(a);
    out[7 * n + i] = hrsqrt(a);
    out[8 * n + i] = hrcp(x);
    out[9 * n + i] = hsin(x);
    out[10 * n + i] = hcos(x);
    const __half2 e = h2exp2(__half2half2(x)), r = h2rsqrt(__half2half2(a));
    out[11 * n + i] = __low2half(e);
    out[12 * n + i] = __high2half(r);
}
