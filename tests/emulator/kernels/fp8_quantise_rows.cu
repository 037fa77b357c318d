#include <cuda_fp8.h>

// A block a row: the largest magnitude becomes 448, the largest e4m3, and the row's scale undoes it.
__global__ void fp8_quantise_rows(const float* in, unsigned char* codes, float* scales, int columns) {
    __shared__ float parts[8];
    const float* row = in + blockIdx.x * columns;
    float top = 0.0f;
    for (int i = threadIdx.x; i < columns; i += blockDim.x) top = fmaxf(top, fabsf(row[i]));
    for (int offset = 16; offset > 0; offset /= 2) top = fmaxf(top, __shfl_xor_sync(0xffffffff, top, offset));
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = top;
    __syncthreads();
    for (int w = 0; w < blockDim.x / 32; ++w) top = fmaxf(top, parts[w]);
    const float scale = top > 0.0f ? __fdiv_rn(top, 448.0f) : 1.0f;
    if (threadIdx.x == 0) scales[blockIdx.x] = scale;
    for (int i = threadIdx.x; i < columns; i += blockDim.x)
        codes[blockIdx.x * columns + i] = __nv_cvt_float_to_fp8(__fdiv_rn(row[i], scale), __NV_SATFINITE, __NV_E4M3);
}
