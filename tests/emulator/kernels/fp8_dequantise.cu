#include <cuda_fp16.h>
#include <cuda_fp8.h>

// Sixteen codes a thread: one 16-byte load, two 16-byte stores.
__global__ void fp8_dequantise(const uint4* codes, const float* scales, uint4* out, int pieces_a_row, int pieces) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= pieces) return;
    const uint4 sixteen = codes[i];
    const __nv_fp8x2_storage_t* two = reinterpret_cast<const __nv_fp8x2_storage_t*>(&sixteen);
    const __half2 scale = __float2half2_rn(scales[i / pieces_a_row]);
    __align__(16) __half2 wide[8];
#pragma unroll
    for (int j = 0; j < 8; ++j) wide[j] = __hmul2(__half2(__nv_cvt_fp8x2_to_halfraw2(two[j], __NV_E4M3)), scale);
    out[2 * i] = reinterpret_cast<const uint4*>(wide)[0];
    out[2 * i + 1] = reinterpret_cast<const uint4*>(wide)[1];
}
