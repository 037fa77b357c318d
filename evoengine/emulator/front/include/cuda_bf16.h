// __nv_bfloat16 and __nv_bfloat162.
#pragma once
#define __CUDA_BF16_TYPES_EXIST__
#define EV_BFLOAT
#define EV_H __nv_bfloat16
#define EV_H2 __nv_bfloat162
#define EV_RAW __nv_bfloat16_raw
#define EV_RAW2 __nv_bfloat162_raw
#define EV_E __bf16
#define EV_V1 __ev_bfloat1
#define EV_V2 __ev_bfloat2
#define EV_P "bf16"
#define EV_FTZ "ftz."
#define EV_ONE 0x3f80
#define EV_WHOLE(x) __ev_odd(x)  // PTX has no conversion before sm_90
#define EV_INF 0x7f80
#define EV_WIDEN(bits) __builtin_bit_cast(float, (unsigned int)(bits) << 16)
#if __CUDA_ARCH__ >= 900
#define EV_CONTRACT
#define EV_NATIVE_FUNCTIONS 1
#else
// Before sm_90 PTX has no bf16 sum: it is fma(a, 1, b), which nothing fuses further.
#define EV_CONTRACT _Pragma("clang fp contract(off)")
#define EV_NATIVE_FUNCTIONS 0
#endif
#include <ev/short_float.h>
#include <ev/short_float_names.h>
typedef __nv_bfloat16 nv_bfloat16;
typedef __nv_bfloat162 nv_bfloat162;

EV __nv_bfloat16 __float2bfloat16(float x) { return __nv_bfloat16(x); }
EV __nv_bfloat16 __float2bfloat16_rn(float x) { return __nv_bfloat16(x); }
EV __nv_bfloat16 __float2bfloat16_rz(float x) {
    __nv_bfloat16 d;
    asm("cvt.rz.bf16.f32 %0, %1;" : "=h"(d.__x) : "f"(x));
    return d;
}
// Rounded towards one side: what lies below is cut off, and one more is added where the number lies on that side of it.
EV __nv_bfloat16 __ev_bfloat_directed(float x, bool away) {
    const unsigned int bits = __float_as_uint(x), cut = bits & 0xffff0000u;
    if (isnan(x)) return __nv_bfloat16_raw{0x7fff};
    return __nv_bfloat16_raw{(unsigned short)((cut != bits && away ? cut + 0x10000u : cut) >> 16)};
}
EV __nv_bfloat16 __float2bfloat16_rd(float x) { return __ev_bfloat_directed(x, signbit(x)); }
EV __nv_bfloat16 __float2bfloat16_ru(float x) { return __ev_bfloat_directed(x, !signbit(x)); }
EV __nv_bfloat16 __double2bfloat16(double x) { return __nv_bfloat16(x); }
EV float __bfloat162float(__nv_bfloat16 x) { return x; }
EV __nv_bfloat162 __float2bfloat162_rn(float x) { return __nv_bfloat162(__nv_bfloat16(x), __nv_bfloat16(x)); }
EV __nv_bfloat162 __floats2bfloat162_rn(float a, float b) {
    unsigned int d;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(d) : "f"(b), "f"(a));
    return __builtin_bit_cast(__nv_bfloat162, d);
}
EV __nv_bfloat162 __float22bfloat162_rn(float2 a) { return __floats2bfloat162_rn(a.x, a.y); }
EV float2 __bfloat1622float2(__nv_bfloat162 a) { return float2{(float)a.x, (float)a.y}; }
EV __nv_bfloat162 make_bfloat162(__nv_bfloat16 a, __nv_bfloat16 b) { return __nv_bfloat162(a, b); }
EV __nv_bfloat162 __bfloat162bfloat162(__nv_bfloat16 a) { return __nv_bfloat162(a, a); }
EV short __bfloat16_as_short(__nv_bfloat16 a) { return (short)a.__x; }
EV unsigned short __bfloat16_as_ushort(__nv_bfloat16 a) { return a.__x; }
EV __nv_bfloat16 __short_as_bfloat16(short bits) { return __nv_bfloat16_raw{(unsigned short)bits}; }
EV __nv_bfloat16 __ushort_as_bfloat16(unsigned short bits) { return __nv_bfloat16_raw{bits}; }
#define EV_INTEGERS(R)                                                                                               \
    EV short __bfloat162short_##R(__nv_bfloat16 x) { return __ev_to_short(__float2int_##R(x)); }                             \
    EV unsigned short __bfloat162ushort_##R(__nv_bfloat16 x) { return __ev_to_ushort(__float2uint_##R(x)); }         \
    EV int __bfloat162int_##R(__nv_bfloat16 x) { return __float2int_##R(x); }                                        \
    EV unsigned int __bfloat162uint_##R(__nv_bfloat16 x) { return __float2uint_##R(x); }                             \
    EV long long __bfloat162ll_##R(__nv_bfloat16 x) { return __float2ll_##R(x); }                                    \
    EV unsigned long long __bfloat162ull_##R(__nv_bfloat16 x) { return __float2ull_##R(x); }
EV_INTEGERS(rn)
EV_INTEGERS(rz)
EV_INTEGERS(rd)
EV_INTEGERS(ru)
#undef EV_INTEGERS
EV signed char __bfloat162char_rz(__nv_bfloat16 x) { return __ev_to_char(__float2int_rz(x)); }
EV unsigned char __bfloat162uchar_rz(__nv_bfloat16 x) { return __ev_to_uchar(__float2uint_rz(x)); }
#define EV_INTEGERS(NAME, T, VIA)                                                                                    \
    EV __nv_bfloat16 __##NAME##2bfloat16_rn(T x) { return __nv_bfloat16(x); }                                        \
    EV __nv_bfloat16 __##NAME##2bfloat16_rz(T x) { return __float2bfloat16_rz(__##VIA##2float_rz(x)); }              \
    EV __nv_bfloat16 __##NAME##2bfloat16_rd(T x) { return __float2bfloat16_rd(__##VIA##2float_rd(x)); }              \
    EV __nv_bfloat16 __##NAME##2bfloat16_ru(T x) { return __float2bfloat16_ru(__##VIA##2float_ru(x)); }
EV_INTEGERS(short, short, int)
EV_INTEGERS(ushort, unsigned short, uint)
EV_INTEGERS(int, int, int)
EV_INTEGERS(uint, unsigned int, uint)
EV_INTEGERS(ll, long long, ll)
EV_INTEGERS(ull, unsigned long long, ull)
#undef EV_INTEGERS
#define CUDART_INF_BF16 __ushort_as_bfloat16((unsigned short)0x7F80U)
#define CUDART_NAN_BF16 __ushort_as_bfloat16((unsigned short)0x7FFFU)
#define CUDART_ONE_BF16 __ushort_as_bfloat16((unsigned short)0x3F80U)
#define CUDART_ZERO_BF16 __ushort_as_bfloat16((unsigned short)0x0000U)
