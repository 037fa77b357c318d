// The counter-based generator Philox 4x32-10, four numbers a thread, and normal numbers made of them (Box and Muller).
__device__ __forceinline__ uint4 philox_round(uint4 c, uint2 k) {
    unsigned int hi0 = __umulhi(0xD2511F53u, c.x), lo0 = 0xD2511F53u * c.x;
    unsigned int hi1 = __umulhi(0xCD9E8D57u, c.z), lo1 = 0xCD9E8D57u * c.z;
    return make_uint4(hi1 ^ c.y ^ k.x, lo1, hi0 ^ c.w ^ k.y, lo0);
}

__global__ void philox(uint4* numbers, float2* normal, unsigned int seed_low, unsigned int seed_high, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    uint4 c = make_uint4(i, 0u, 7u, 0u);
    uint2 k = make_uint2(seed_low, seed_high);
#pragma unroll
    for (int r = 0; r < 10; ++r) {
        c = philox_round(c, k);
        k.x += 0x9E3779B9u;
        k.y += 0xBB67AE85u;
    }
    numbers[i] = c;
    float u = fmaf((float)(c.x >> 8), 5.9604645e-8f, 2.9802322e-8f);
    float radius = sqrtf(-2.0f * logf(u));
    float s, t;
    sincospif((float)(c.y >> 8) * 1.1920929e-7f, &s, &t);
    normal[i] = make_float2(radius * s, radius * t);
}
