#include <cuda_fp16.h>
#include <cuda_fp8.h>

__device__ float2 widen(unsigned short two) {
    return __half22float2(__half2(__nv_cvt_fp8x2_to_halfraw2(two, __NV_E4M3)));
}

// One warp a pair of rows: four codes a load, float sums, one scale a row.
__global__ void fp8_dot(const unsigned* a, const unsigned* b, const float* a_scale, const float* b_scale, float* out, int rows, int words) {
    const int row = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32, lane = threadIdx.x % 32;
    if (row >= rows) return;
    float sum = 0.0f;
    for (int i = lane; i < words; i += 32) {
        const unsigned x = a[row * words + i], y = b[row * words + i];
        const float2 x0 = widen(x & 0xffff), x1 = widen(x >> 16), y0 = widen(y & 0xffff), y1 = widen(y >> 16);
        sum = fmaf(x0.x, y0.x, sum);
        sum = fmaf(x0.y, y0.y, sum);
        sum = fmaf(x1.x, y1.x, sum);
        sum = fmaf(x1.y, y1.y, sum);
    }
    for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_xor_sync(0xffffffff, sum, offset);
    if (lane == 0) out[row] = sum * a_scale[row] * b_scale[row];
}
