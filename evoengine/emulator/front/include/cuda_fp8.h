// e4m3 and e5m2: single, pairs, quadruples, and their conversions.
#pragma once
#include <cuda_bf16.h>
#include <cuda_fp16.h>
typedef unsigned char __nv_fp8_storage_t;
typedef unsigned short __nv_fp8x2_storage_t;
typedef unsigned int __nv_fp8x4_storage_t;
enum __nv_saturation_t { __NV_NOSAT, __NV_SATFINITE };
enum __nv_fp8_interpretation_t { __NV_E4M3, __NV_E5M2 };

// Rounds to the nearest, ties to even; from double, so that every source rounds once. What is too large becomes the largest
// number, or NaN (e4m3) and infinity (e5m2).
EV unsigned char __ev_fp8_encode(double x, __nv_saturation_t saturate, __nv_fp8_interpretation_t kind) {
    const int mantissa = kind == __NV_E4M3 ? 3 : 2, bias = kind == __NV_E4M3 ? 7 : 15, largest = kind == __NV_E4M3 ? 0x7e : 0x7b;
    if (isnan(x)) return 0x7f;
    const int sign = signbit(x) ? 0x80 : 0;
    const double magnitude = fabs(x);
    int code = 0x100;
    if (magnitude < 65536.0) {
        int exponent = (int)(__double_as_longlong(magnitude) >> 52) - 1023;
        if (exponent < 1 - bias) exponent = 1 - bias;
        const double units = __longlong_as_double((long long)(1023 - exponent + mantissa) << 52);  // in one unit of the last place
        code = ((exponent + bias - 1) << mantissa) + (int)rint(magnitude * units);
    }
    if (code > largest) code = saturate == __NV_SATFINITE ? largest : kind == __NV_E4M3 ? 0x7f : 0x7c;
    return (unsigned char)(sign | code);
}
EV __nv_fp8x2_storage_t __nv_cvt_float2_to_fp8x2(float2 x, __nv_saturation_t saturate, __nv_fp8_interpretation_t kind) {
#if __CUDA_ARCH__ >= 890
    if (saturate == __NV_SATFINITE) {
        unsigned short d;
        if (kind == __NV_E4M3) asm("cvt.rn.satfinite.e4m3x2.f32 %0, %2, %1;" : "=h"(d) : "f"(x.x), "f"(x.y));
        else asm("cvt.rn.satfinite.e5m2x2.f32 %0, %2, %1;" : "=h"(d) : "f"(x.x), "f"(x.y));
        return d;
    }
#endif
    return (unsigned short)(__ev_fp8_encode(x.x, saturate, kind) | __ev_fp8_encode(x.y, saturate, kind) << 8);
}
EV __nv_fp8_storage_t __nv_cvt_float_to_fp8(float x, __nv_saturation_t saturate, __nv_fp8_interpretation_t kind) {
    return (unsigned char)__nv_cvt_float2_to_fp8x2(float2{x, 0.0f}, saturate, kind);
}
EV __nv_fp8_storage_t __nv_cvt_double_to_fp8(double x, __nv_saturation_t saturate, __nv_fp8_interpretation_t kind) {
    return __ev_fp8_encode(x, saturate, kind);
}
EV __nv_fp8x2_storage_t __nv_cvt_double2_to_fp8x2(double2 x, __nv_saturation_t saturate, __nv_fp8_interpretation_t kind) {
    return (unsigned short)(__ev_fp8_encode(x.x, saturate, kind) | __ev_fp8_encode(x.y, saturate, kind) << 8);
}
EV __nv_fp8x2_storage_t __nv_cvt_halfraw2_to_fp8x2(__half2_raw x, __nv_saturation_t saturate, __nv_fp8_interpretation_t kind) {
#if __CUDA_ARCH__ >= 890
    if (saturate == __NV_SATFINITE) {
        unsigned short d;
        const unsigned int bits = __builtin_bit_cast(unsigned int, x);
        if (kind == __NV_E4M3) asm("cvt.rn.satfinite.e4m3x2.f16x2 %0, %1;" : "=h"(d) : "r"(bits));
        else asm("cvt.rn.satfinite.e5m2x2.f16x2 %0, %1;" : "=h"(d) : "r"(bits));
        return d;
    }
#endif
    return __nv_cvt_float2_to_fp8x2(__half22float2(__half2(x)), saturate, kind);
}
EV __nv_fp8_storage_t __nv_cvt_halfraw_to_fp8(__half_raw x, __nv_saturation_t saturate, __nv_fp8_interpretation_t kind) {
    return (unsigned char)__nv_cvt_halfraw2_to_fp8x2(__half2_raw{x.x, 0}, saturate, kind);
}
EV __nv_fp8_storage_t __nv_cvt_bfloat16raw_to_fp8(__nv_bfloat16_raw x, __nv_saturation_t saturate, __nv_fp8_interpretation_t kind) {
    return __nv_cvt_float_to_fp8(__nv_bfloat16(x), saturate, kind);
}
EV __nv_fp8x2_storage_t __nv_cvt_bfloat16raw2_to_fp8x2(__nv_bfloat162_raw x, __nv_saturation_t saturate, __nv_fp8_interpretation_t kind) {
    return __nv_cvt_float2_to_fp8x2(__bfloat1622float2(__nv_bfloat162(x)), saturate, kind);
}
EV unsigned short __ev_fp8_decode(unsigned char code, __nv_fp8_interpretation_t kind) {
    if (kind == __NV_E5M2) return (unsigned short)(code << 8);  // the upper half of an fp16
    if ((code & 0x7f) == 0x7f) return 0x7fff;
    // As fp16 with the exponent's bias still that of e4m3; 2^8 puts it right, exactly.
    const unsigned short bits = (unsigned short)((code & 0x80) << 8 | (code & 0x7f) << 7);
    return __builtin_bit_cast(unsigned short, (_Float16)(__builtin_bit_cast(_Float16, bits) * (_Float16)256.0f));
}
EV __half2_raw __nv_cvt_fp8x2_to_halfraw2(__nv_fp8x2_storage_t x, __nv_fp8_interpretation_t kind) {
#if __CUDA_ARCH__ >= 890
    unsigned int d;
    if (kind == __NV_E4M3) asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(d) : "h"(x));
    else asm("cvt.rn.f16x2.e5m2x2 %0, %1;" : "=r"(d) : "h"(x));
    return __builtin_bit_cast(__half2_raw, d);
#else
    return __half2_raw{__ev_fp8_decode((unsigned char)x, kind), __ev_fp8_decode((unsigned char)(x >> 8), kind)};
#endif
}
EV __half_raw __nv_cvt_fp8_to_halfraw(__nv_fp8_storage_t x, __nv_fp8_interpretation_t kind) {
    return __half_raw{__nv_cvt_fp8x2_to_halfraw2(x, kind).x};
}

#define EV_FP8(NAME, PAIR, FOUR, KIND)                                                                                         \
    struct __align__(1) NAME {                                                                                                 \
        __nv_fp8_storage_t __x;                                                                                                \
        NAME() = default;                                                                                                      \
        EV_METHOD explicit NAME(float x) : __x(__nv_cvt_float_to_fp8(x, __NV_SATFINITE, KIND)) {}                              \
        EV_METHOD explicit NAME(double x) : __x(__nv_cvt_double_to_fp8(x, __NV_SATFINITE, KIND)) {}                            \
        EV_METHOD explicit NAME(__half x) : __x(__nv_cvt_halfraw_to_fp8(x, __NV_SATFINITE, KIND)) {}                           \
        EV_METHOD explicit NAME(__nv_bfloat16 x) : __x(__nv_cvt_bfloat16raw_to_fp8(x, __NV_SATFINITE, KIND)) {}                \
        EV_METHOD explicit NAME(int x) : __x(__nv_cvt_double_to_fp8(x, __NV_SATFINITE, KIND)) {}                               \
        EV_METHOD explicit NAME(unsigned int x) : __x(__nv_cvt_double_to_fp8(x, __NV_SATFINITE, KIND)) {}                      \
        EV_METHOD explicit NAME(long long x) : __x(__nv_cvt_float_to_fp8((float)x, __NV_SATFINITE, KIND)) {}                   \
        EV_METHOD explicit NAME(unsigned long long x) : __x(__nv_cvt_float_to_fp8((float)x, __NV_SATFINITE, KIND)) {}          \
        EV_METHOD explicit operator __half() const { return __nv_cvt_fp8_to_halfraw(__x, KIND); }                              \
        EV_METHOD explicit operator float() const { return __half(__nv_cvt_fp8_to_halfraw(__x, KIND)); }                       \
        EV_METHOD explicit operator double() const { return (float)*this; }                                                    \
        EV_METHOD explicit operator __nv_bfloat16() const { return __nv_bfloat16((float)*this); }                              \
        EV_METHOD explicit operator int() const { return __float2int_rz((float)*this); }                                       \
        EV_METHOD explicit operator unsigned int() const { return __float2uint_rz((float)*this); }                             \
        EV_METHOD explicit operator bool() const { return (__x & 0x7f) != 0; }                                                 \
    };                                                                                                                         \
    struct __align__(2) PAIR {                                                                                                 \
        __nv_fp8x2_storage_t __x;                                                                                              \
        PAIR() = default;                                                                                                      \
        EV_METHOD explicit PAIR(float2 x) : __x(__nv_cvt_float2_to_fp8x2(x, __NV_SATFINITE, KIND)) {}                          \
        EV_METHOD explicit PAIR(double2 x) : __x(__nv_cvt_double2_to_fp8x2(x, __NV_SATFINITE, KIND)) {}                        \
        EV_METHOD explicit PAIR(__half2 x) : __x(__nv_cvt_halfraw2_to_fp8x2(x, __NV_SATFINITE, KIND)) {}                       \
        EV_METHOD explicit PAIR(__nv_bfloat162 x) : __x(__nv_cvt_bfloat16raw2_to_fp8x2(x, __NV_SATFINITE, KIND)) {}            \
        EV_METHOD explicit operator __half2() const { return __nv_cvt_fp8x2_to_halfraw2(__x, KIND); }                          \
        EV_METHOD explicit operator float2() const { return __half22float2((__half2)*this); }                                  \
    };                                                                                                                         \
    struct __align__(4) FOUR {                                                                                                 \
        __nv_fp8x4_storage_t __x;                                                                                              \
        FOUR() = default;                                                                                                      \
        EV_METHOD explicit FOUR(float4 x)                                                                                      \
            : __x(__nv_cvt_float2_to_fp8x2(float2{x.x, x.y}, __NV_SATFINITE, KIND)                                             \
                  | (unsigned int)__nv_cvt_float2_to_fp8x2(float2{x.z, x.w}, __NV_SATFINITE, KIND) << 16) {}                   \
        EV_METHOD explicit FOUR(__half2 low, __half2 high)                                                                     \
            : __x(__nv_cvt_halfraw2_to_fp8x2(low, __NV_SATFINITE, KIND)                                                        \
                  | (unsigned int)__nv_cvt_halfraw2_to_fp8x2(high, __NV_SATFINITE, KIND) << 16) {}                             \
        EV_METHOD explicit FOUR(__nv_bfloat162 low, __nv_bfloat162 high)                                                       \
            : __x(__nv_cvt_bfloat16raw2_to_fp8x2(low, __NV_SATFINITE, KIND)                                                    \
                  | (unsigned int)__nv_cvt_bfloat16raw2_to_fp8x2(high, __NV_SATFINITE, KIND) << 16) {}                         \
        EV_METHOD explicit operator float4() const {                                                                           \
            const float2 low = __half22float2(__half2(__nv_cvt_fp8x2_to_halfraw2((unsigned short)__x, KIND)));                 \
            const float2 high = __half22float2(__half2(__nv_cvt_fp8x2_to_halfraw2((unsigned short)(__x >> 16), KIND)));        \
            return float4{low.x, low.y, high.x, high.y};                                                                       \
        }                                                                                                                      \
    };
EV_FP8(__nv_fp8_e4m3, __nv_fp8x2_e4m3, __nv_fp8x4_e4m3, __NV_E4M3)
EV_FP8(__nv_fp8_e5m2, __nv_fp8x2_e5m2, __nv_fp8x4_e5m2, __NV_E5M2)
#undef EV_FP8
