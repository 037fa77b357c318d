// __half and __half2.
#pragma once
#define __CUDA_FP16_TYPES_EXIST__
#define EV_H __half
#define EV_H2 __half2
#define EV_RAW __half_raw
#define EV_RAW2 __half2_raw
#define EV_E _Float16
#define EV_V1 __ev_half1
#define EV_V2 __ev_half2
#define EV_P "f16"
#define EV_FTZ
#define EV_ONE 0x3c00
#define EV_WHOLE(x) x
#define EV_INF 0x7c00
#define EV_WIDEN(bits) ((float)__builtin_bit_cast(_Float16, bits))
#define EV_CONTRACT
#define EV_NATIVE_FUNCTIONS 1
#include <ev/short_float.h>
#include <ev/short_float_names.h>
typedef __half half;
typedef __half2 half2;
typedef __half __nv_half;
typedef __half2 __nv_half2;
typedef __half nv_half;
typedef __half2 nv_half2;
typedef __half_raw __nv_half_raw;
typedef __half2_raw __nv_half2_raw;

#define EV_NARROW(NAME, MODE)                                                             \
    EV __half NAME(float x) {                                                             \
        __half d;                                                                         \
        asm("cvt." MODE ".f16.f32 %0, %1;" : "=h"(d.__x) : "f"(x));                       \
        return d;                                                                         \
    }
EV_NARROW(__float2half_rz, "rz")
EV_NARROW(__float2half_rd, "rm")
EV_NARROW(__float2half_ru, "rp")
#undef EV_NARROW
EV __half __float2half(float x) { return __half(x); }
EV __half __float2half_rn(float x) { return __half(x); }
EV __half __double2half(double x) { return __half(x); }
EV float __half2float(__half x) { return x; }
EV __half2 __float2half2_rn(float x) { return __half2(__half(x), __half(x)); }
EV __half2 __floats2half2_rn(float a, float b) {
#if __CUDA_ARCH__ >= 800
    unsigned int d;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(d) : "f"(b), "f"(a));
    return __builtin_bit_cast(__half2, d);
#else
    return __half2(__half(a), __half(b));
#endif
}
EV __half2 __float22half2_rn(float2 a) { return __floats2half2_rn(a.x, a.y); }
EV float2 __half22float2(__half2 a) { return float2{(float)a.x, (float)a.y}; }
EV __half2 make_half2(__half a, __half b) { return __half2(a, b); }
EV __half2 __half2half2(__half a) { return __half2(a, a); }
EV short __half_as_short(__half a) { return (short)a.__x; }
EV unsigned short __half_as_ushort(__half a) { return a.__x; }
EV __half __short_as_half(short bits) { return __half_raw{(unsigned short)bits}; }
EV __half __ushort_as_half(unsigned short bits) { return __half_raw{bits}; }
#define EV_INTEGERS(R, PTX)                                                                                          \
    EV short __half2short_##R(__half x) { return __ev_to_short(__float2int_##R(x)); }                                        \
    EV unsigned short __half2ushort_##R(__half x) { return __ev_to_ushort(__float2uint_##R(x)); }                    \
    EV int __half2int_##R(__half x) { return __float2int_##R(x); }                                                   \
    EV unsigned int __half2uint_##R(__half x) { return __float2uint_##R(x); }                                        \
    EV long long __half2ll_##R(__half x) { return __float2ll_##R(x); }                                               \
    EV unsigned long long __half2ull_##R(__half x) { return __float2ull_##R(x); }                                    \
    EV_FROM_INTEGER(__short2half_##R, PTX, short, "s16", "h") EV_FROM_INTEGER(__ushort2half_##R, PTX, unsigned short, "u16", "h") \
    EV_FROM_INTEGER(__int2half_##R, PTX, int, "s32", "r") EV_FROM_INTEGER(__uint2half_##R, PTX, unsigned int, "u32", "r")         \
    EV_FROM_INTEGER(__ll2half_##R, PTX, long long, "s64", "l") EV_FROM_INTEGER(__ull2half_##R, PTX, unsigned long long, "u64", "l")
#define EV_FROM_INTEGER(NAME, MODE, T, TYPE, C)                                           \
    EV __half NAME(T x) {                                                                 \
        __half d;                                                                         \
        asm("cvt." MODE ".f16." TYPE " %0, %1;" : "=h"(d.__x) : C(x));                    \
        return d;                                                                         \
    }
EV_INTEGERS(rn, "rn")
EV_INTEGERS(rz, "rz")
EV_INTEGERS(rd, "rm")
EV_INTEGERS(ru, "rp")
#undef EV_INTEGERS
#undef EV_FROM_INTEGER
EV signed char __half2char_rz(__half x) { return __ev_to_char(__float2int_rz(x)); }
EV unsigned char __half2uchar_rz(__half x) { return __ev_to_uchar(__float2uint_rz(x)); }
#define CUDART_INF_FP16 __ushort_as_half((unsigned short)0x7C00U)
#define CUDART_NAN_FP16 __ushort_as_half((unsigned short)0x7FFFU)
#define CUDART_ONE_FP16 __ushort_as_half((unsigned short)0x3C00U)
#define CUDART_ZERO_FP16 __ushort_as_half((unsigned short)0x0000U)
#define CUDART_MAX_NORMAL_FP16 __ushort_as_half((unsigned short)0x7BFFU)
#define CUDART_MIN_DENORM_FP16 __ushort_as_half((unsigned short)0x0001U)
