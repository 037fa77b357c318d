// A pair that begins at an odd element.
#include <cuda_fp16.h>
__global__ void __launch_bounds__(32) misaligned_half2(const half* in, float* out, int shift) {
#ifdef FIXED
    const int i = 2 * threadIdx.x + shift * 2;
#else
    const int i = 2 * threadIdx.x + shift;
#endif
    const half2 x = *reinterpret_cast<const half2*>(in + i);    // FAULT
    out[threadIdx.x] = __half2float(x.x) + __half2float(x.y);
}
