// Halves that are stored one by one and read as a vector, in loops that are not unrolled: NVIDIA's compiler lets one type
// be read as another.
#include <cuda_fp16.h>
__device__ __forceinline__ uint4 fetch(const float* x, int scale) {
    __align__(16) half piece[8];
#pragma unroll 1
    for (int i = 0; i < 8; i++) piece[i] = __float2half(x[i] * scale);
    return *reinterpret_cast<uint4*>(piece);
}
extern "C" __global__ void halves_read_as_vectors(const float* x, uint4* y, int rounds) {
#pragma unroll 1
    for (int round = 0; round < rounds; round++) {
        const int place = round * blockDim.x + threadIdx.x;
        y[place] = fetch(x + place * 8, round + 1);
    }
}
