// Sums, products and conversions that stay at the ends of their range.
__device__ __forceinline__ int add_sat(int a, int b) {
    int r;
    asm("add.sat.s32 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b));
    return r;
}

__device__ __forceinline__ int sub_sat(int a, int b) {
    int r;
    asm("sub.sat.s32 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b));
    return r;
}

__device__ __forceinline__ signed char to_int8(float x) {
    int r;
    asm("cvt.rni.sat.s8.f32 %0, %1;" : "=r"(r) : "f"(x));
    return (signed char)r;
}

__device__ __forceinline__ unsigned char to_uint8(float x) {
    unsigned int r;
    asm("cvt.rni.sat.u8.f32 %0, %1;" : "=r"(r) : "f"(x));
    return (unsigned char)r;
}

extern "C" __global__ void saturating(const int* a, const int* b, const float* f, int* out, signed char* narrow, unsigned char* bytes,
                                      unsigned int* whole, float* unit, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    out[2 * i] = add_sat(a[i], b[i]);
    out[2 * i + 1] = sub_sat(a[i], b[i]);
    narrow[i] = to_int8(f[i]);
    bytes[i] = to_uint8(f[i]);
    whole[3 * i] = (unsigned int)__float2int_rz(f[i] * 1e8f);
    whole[3 * i + 1] = __float2uint_rn(f[i] * 1e8f);
    whole[3 * i + 2] = (unsigned int)min(max(a[i] >> 8, -32768), 32767);
    unit[i] = __saturatef(f[i] * 0.5f + 0.5f);
}
