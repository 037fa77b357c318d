#include <cuda_fp16.h>
#include <cuda_fp8.h>

// fp8 numbers as types: arrays of them, conversions by cast, four at once.
__global__ void fp8_classes(const __nv_fp8_e4m3* a, const __nv_fp8_e5m2* b, __nv_fp8_e4m3* product, float4* four, __half* halves, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const float x = static_cast<float>(a[i]), y = float(b[i]);
    product[i] = __nv_fp8_e4m3(x * y);
    halves[i] = static_cast<__half>(a[i]);
    if (i % 4 == 0) {
        const __nv_fp8x4_e4m3 packed(make_float4(x, -x, 2.0f * x, y));
        four[i / 4] = static_cast<float4>(packed);
    }
}
