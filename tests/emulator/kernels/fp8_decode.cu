#include <cuda_fp16.h>
#include <cuda_fp8.h>

// All 256 codes of both formats: through the raw conversion, through the class, and two at a time.
__global__ void fp8_decode(const unsigned char* codes, float* e4m3, float* e5m2, __half2* pairs, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    e4m3[i] = __half2float(__half(__nv_cvt_fp8_to_halfraw(codes[i], __NV_E4M3)));
    __nv_fp8_e5m2 value;
    value.__x = codes[i];
    e5m2[i] = float(value);
    if (i % 2 == 0) {
        const __nv_fp8x2_storage_t both = codes[i] | codes[i + 1] << 8;
        pairs[i / 2] = __half2(__nv_cvt_fp8x2_to_halfraw2(both, __NV_E4M3));
    }
}
