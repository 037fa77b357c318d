#include <cuda_fp16.h>
#include <cuda_fp8.h>

// Halves to fp8, in pairs and alone, saturated; then to half again.
__global__ void fp8_from_half(const __half2* in, unsigned short* e4m3, unsigned short* e5m2, __half2* back, int pairs) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= pairs) return;
    const __half2_raw raw = in[i];
    e4m3[i] = __nv_cvt_halfraw2_to_fp8x2(raw, __NV_SATFINITE, __NV_E4M3);
    const __half_raw low = __low2half(in[i]), high = __high2half(in[i]);
    e5m2[i] = __nv_cvt_halfraw_to_fp8(low, __NV_SATFINITE, __NV_E5M2) | __nv_cvt_halfraw_to_fp8(high, __NV_SATFINITE, __NV_E5M2) << 8;
    back[i] = __half2(__nv_cvt_fp8x2_to_halfraw2(e5m2[i], __NV_E5M2));
}
