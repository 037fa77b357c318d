// Arithmetic and conversions with a rounding mode, fast approximations.
#pragma once
// CUDA calls rounding down _rd and up _ru, PTX .rm and .rp.
#define EV_ROUNDED(R, P)                                                                                   \
    EV float __fadd_##R(float a, float b) { return __nvvm_add_##P##_f(a, b); }                             \
    EV float __fsub_##R(float a, float b) { return __nvvm_add_##P##_f(a, -b); }                            \
    EV float __fmul_##R(float a, float b) { return __nvvm_mul_##P##_f(a, b); }                             \
    EV float __fmaf_##R(float a, float b, float c) { return __nvvm_fma_##P##_f(a, b, c); }                 \
    EV float __fmaf_ieee_##R(float a, float b, float c) { return __nvvm_fma_##P##_f(a, b, c); }            \
    EV float __fdiv_##R(float a, float b) { return __nvvm_div_##P##_f(a, b); }                             \
    EV float __frcp_##R(float a) { return __nvvm_rcp_##P##_f(a); }                                         \
    EV float __fsqrt_##R(float a) { return __nvvm_sqrt_##P##_f(a); }                                       \
    EV double __dadd_##R(double a, double b) { return __nvvm_add_##P##_d(a, b); }                          \
    EV double __dsub_##R(double a, double b) { return __nvvm_add_##P##_d(a, -b); }                         \
    EV double __dmul_##R(double a, double b) { return __nvvm_mul_##P##_d(a, b); }                          \
    EV double __fma_##R(double a, double b, double c) { return __nvvm_fma_##P##_d(a, b, c); }              \
    EV double __ddiv_##R(double a, double b) { return __nvvm_div_##P##_d(a, b); }                          \
    EV double __drcp_##R(double a) { return __nvvm_rcp_##P##_d(a); }                                       \
    EV double __dsqrt_##R(double a) { return __nvvm_sqrt_##P##_d(a); }                                     \
    EV int __float2int_##R(float x) { return __nvvm_f2i_##P(x); }                                          \
    EV unsigned int __float2uint_##R(float x) { return __nvvm_f2ui_##P(x); }                               \
    EV long long __float2ll_##R(float x) { return __nvvm_f2ll_##P(x); }                                    \
    EV unsigned long long __float2ull_##R(float x) { return __nvvm_f2ull_##P(x); }                         \
    EV int __double2int_##R(double x) { return __nvvm_d2i_##P(x); }                                        \
    EV unsigned int __double2uint_##R(double x) { return __nvvm_d2ui_##P(x); }                             \
    EV long long __double2ll_##R(double x) { return __nvvm_d2ll_##P(x); }                                  \
    EV unsigned long long __double2ull_##R(double x) { return __nvvm_d2ull_##P(x); }                       \
    EV float __double2float_##R(double x) { return __nvvm_d2f_##P(x); }                                    \
    EV float __int2float_##R(int x) { return __nvvm_i2f_##P(x); }                                          \
    EV float __uint2float_##R(unsigned int x) { return __nvvm_ui2f_##P(x); }                               \
    EV float __ll2float_##R(long long x) { return __nvvm_ll2f_##P(x); }                                    \
    EV float __ull2float_##R(unsigned long long x) { return __nvvm_ull2f_##P(x); }                         \
    EV double __ll2double_##R(long long x) { return __nvvm_ll2d_##P(x); }                                  \
    EV double __ull2double_##R(unsigned long long x) { return __nvvm_ull2d_##P(x); }
EV_ROUNDED(rn, rn)
EV_ROUNDED(rz, rz)
EV_ROUNDED(rd, rm)
EV_ROUNDED(ru, rp)
#undef EV_ROUNDED
// To 8 and 16 bits what does not fit becomes the nearest that does, and NaN 0, as from the instructions.
#define EV_NARROW(T, NAME, WIDE, LOW, HIGH) EV T __ev_to_##NAME(WIDE x) { return (T)(x < (LOW) ? (LOW) : x > (HIGH) ? (HIGH) : x); }
EV_NARROW(signed char, char, int, -128, 127)
EV_NARROW(unsigned char, uchar, unsigned int, 0u, 255u)
EV_NARROW(short, short, int, -32768, 32767)
EV_NARROW(unsigned short, ushort, unsigned int, 0u, 65535u)
#undef EV_NARROW
// A float that rounds to fewer bits as the integer itself would: cut off, and odd where anything was lost.
#define EV_ODD(T, CONVERT) \
    EV float __ev_odd(T x) { const float cut = CONVERT(x); return (T)cut == x ? cut : __uint_as_float(__float_as_uint(cut) | 1u); }
EV_ODD(int, __int2float_rz)
EV_ODD(unsigned int, __uint2float_rz)
EV_ODD(long, __ll2float_rz)
EV_ODD(unsigned long, __ull2float_rz)
EV_ODD(long long, __ll2float_rz)
EV_ODD(unsigned long long, __ull2float_rz)
#undef EV_ODD
EV double __int2double_rn(int x) { return x; }
EV double __uint2double_rn(unsigned int x) { return x; }
EV float __frsqrt_rn(float x) { return __nvvm_d2f_rn(__nvvm_div_rn_d(1.0, __nvvm_sqrt_rn_d(x))); }

// Fast approximations, one or two instructions each, as the Programming Guide describes them.
EV float __ev_ex2(float x) { return __nvvm_ex2_approx_f(x); }
EV float __ev_lg2(float x) { return __nvvm_lg2_approx_f(x); }
EV float __fdividef(float a, float b) { return __nvvm_div_approx_f(a, b); }
EV float fdividef(float a, float b) { return a / b; }
EV double fdivide(double a, double b) { return a / b; }
EV float __expf(float x) { return __ev_ex2(x * 0x1.715476p+0f); }       // log2(e)
EV float __exp10f(float x) { return __ev_ex2(x * 0x1.a934f0p+1f); }     // log2(10)
EV float __logf(float x) { return __ev_lg2(x) * 0x1.62e430p-1f; }       // ln(2)
EV float __log10f(float x) { return __ev_lg2(x) * 0x1.344136p-2f; }     // log10(2)
EV float __log2f(float x) { return __ev_lg2(x); }
EV float __powf(float x, float y) { return __ev_ex2(y * __ev_lg2(x)); }
EV float __sinf(float x) { return __nvvm_sin_approx_f(x); }
EV float __cosf(float x) { return __nvvm_cos_approx_f(x); }
EV float __tanf(float x) { return __fdividef(__sinf(x), __cosf(x)); }
EV void __sincosf(float x, float* s, float* c) { *s = __sinf(x); *c = __cosf(x); }
EV float __saturatef(float x) { return __nvvm_saturate_f(x); }
EV float __tanhf(float x) {
    float y;
    asm("tanh.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}
