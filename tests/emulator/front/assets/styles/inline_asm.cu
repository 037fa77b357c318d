#include <cuda_runtime.h>
#include <cuda_fp16.h>
#include <cstdint>

// Helpers in PTX, with every kind of constraint.
static __device__ __forceinline__ uint32_t lane_id() { uint32_t r; asm("mov.u32 %0, %%laneid;" : "=r"(r)); return r; }
__device__ __forceinline__ float4 load_nc(const float4* p) {
    float4 v;
    asm volatile("ld.global.nc.v4.f32 {%0, %1, %2, %3}, [%4];" : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w) : "l"(p));
    return v;
}
__device__ __forceinline__ unsigned short to_half(float f) {
    unsigned short h;
    asm("{ cvt.rn.f16.f32 %0, %1; }" : "=h"(h) : "f"(f));
    return h;
}
template <int LUT> __device__ __forceinline__ int lop3(int a, int b, int c) {
    int res;
    asm volatile("lop3.b32 %0, %1, %2, %3, %4;\n" : "=r"(res) : "r"(a), "r"(b), "r"(c), "n"(LUT));
    return res;
}
__device__ __forceinline__ uint64_t pack(uint32_t lo, uint32_t hi) { uint64_t d; asm("mov.b64 %0, {%1, %2};" : "=l"(d) : "r"(lo), "r"(hi)); return d; }
__device__ __forceinline__ void unpack(uint64_t v, uint32_t& lo, uint32_t& hi) { asm("mov.b64 {%0, %1}, %2;" : "=r"(lo), "=r"(hi) : "l"(v)); }

extern "C" __global__ void __launch_bounds__(128) inline_asm(const float4* in, unsigned short* halves, int* words, unsigned long long* longs) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    float4 v = load_nc(in + i);
    float acc = v.x;
    asm("fma.rn.f32 %0, %1, %2, %0;" : "+f"(acc) : "f"(v.y), "f"(v.z));
    halves[i] = to_half(acc);
    const int a = __float_as_int(v.x), b = __float_as_int(v.y), c = __float_as_int(v.z);
    unsigned field;
    asm("bfe.u32 %0, %1, %2, %3;" : "=r"(field) : "r"(a), "r"(23), "n"(8));
    int chosen;
    asm("{\n\t.reg .pred p;\n\tsetp.gt.f32 p, %1, %2;\n\tselp.s32 %0, 1, %3, p;\n\t}" : "=r"(chosen) : "f"(v.x), "f"(v.y), "r"(-5));
    words[4 * i] = lop3<(0xf0 & 0xcc) | 0xaa>(a, b, c);
    words[4 * i + 1] = static_cast<int>(field);
    words[4 * i + 2] = chosen;
    words[4 * i + 3] = static_cast<int>(lane_id());
    uint32_t lo, hi;
    unpack(pack(a, b) + pack(1u, 0u), lo, hi);
    uint64_t wide;
    asm volatile("mad.wide.u32 %0, %1, %2, %3;" : "=l"(wide) : "r"(lo), "r"(hi), "l"(7ull));
    longs[i] = wide;
}
