#include <cuda_runtime.h>

// Sort keys of floats, the well-known inverse square root, a ballot sort by one bit.
union FloatBits { float f; unsigned int u; struct { unsigned int mantissa : 23, exponent : 8, sign : 1; } parts; };

__device__ __forceinline__ unsigned flip(float f) {
    FloatBits b; b.f = f;
    const unsigned mask = -int(b.u >> 31) | 0x80000000u;
    return b.u ^ mask;
}
__device__ float inverse_sqrt(float x) {
    float half = 0.5f * x;
    int i = *(int*)&x;
    i = 0x5f3759df - (i >> 1);
    x = *(float*)&i;
    x = x * (1.5f - half * x * x);
    return x * (1.5f - half * x * x);
}
__device__ inline unsigned next_pow2(unsigned v) { return v <= 1 ? 1 : 1u << (32 - __clz(v - 1)); }

__global__ void bit_tricks(const float* x, unsigned* keys, float* inverse, int* exponents, unsigned* order) {
    __shared__ volatile unsigned warp_keys[32];
    const int lane = threadIdx.x & 31, i = blockIdx.x * blockDim.x + threadIdx.x;
    FloatBits b{x[i]};
    keys[i] = flip(b.f);
    inverse[i] = inverse_sqrt(fabsf(b.f) + 1e-3f);
    exponents[i] = (int)b.parts.exponent - 127 + (b.parts.sign ? 1000 : 0) + (int)next_pow2(i & 63);
    // One step of a radix sort: stable by the lowest bit of the mantissa.
    const unsigned bit = b.parts.mantissa & 1;
    const unsigned ones = __ballot_sync(0xffffffff, bit), below = (1u << lane) - 1;
    const int place = bit ? __popc(~ones) + __popc(ones & below) : __popc(~ones & below);
    warp_keys[place] = b.u;
    __syncwarp();
    order[i] = warp_keys[lane];
}
