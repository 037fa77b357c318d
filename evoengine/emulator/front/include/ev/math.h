// Math functions with instructions of their own, classification, min and max, std::.
#pragma once
#define INFINITY __builtin_inff()
#define NAN __builtin_nanf("")
#define HUGE_VALF __builtin_huge_valf()
#define HUGE_VAL __builtin_huge_val()
#define M_E 2.7182818284590452354
#define M_LOG2E 1.4426950408889634074
#define M_LOG10E 0.43429448190325182765
#define M_LN2 0.69314718055994530942
#define M_LN10 2.30258509299404568402
#define M_PI 3.14159265358979323846
#define M_PI_2 1.57079632679489661923
#define M_PI_4 0.78539816339744830962
#define M_1_PI 0.31830988618379067154
#define M_2_PI 0.63661977236758134308
#define M_2_SQRTPI 1.12837916709551257390
#define M_SQRT2 1.41421356237309504880
#define M_SQRT1_2 0.70710678118654752440

#define EV_BUILTIN(X)                                        \
    EV float X##f(float x) { return __builtin_##X##f(x); }   \
    EV float X(float x) { return __builtin_##X##f(x); }      \
    EV double X(double x) { return __builtin_##X(x); }
EV_BUILTIN(sqrt)
EV_BUILTIN(floor)
EV_BUILTIN(ceil)
EV_BUILTIN(trunc)
EV_BUILTIN(round)
EV_BUILTIN(rint)
EV_BUILTIN(nearbyint)
EV_BUILTIN(fabs)
#define EV_BUILTIN2(X)                                                          \
    EV float X##f(float x, float y) { return __builtin_##X##f(x, y); }          \
    EV float X(float x, float y) { return __builtin_##X##f(x, y); }             \
    EV double X(double x, double y) { return __builtin_##X(x, y); }             \
    EV_MIXED(X)
EV_BUILTIN2(fmax)
EV_BUILTIN2(fmin)
EV_BUILTIN2(copysign)
EV float fmaf(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
EV float fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
EV double fma(double a, double b, double c) { return __builtin_fma(a, b, c); }
EV float exp2f(float x) { return __nvvm_ex2_approx_f(x); }
EV float exp2(float x) { return exp2f(x); }
EV double exp2(double x) { return __ev_exp2(x); }
EV float rsqrtf(float x) { return __nvvm_rsqrt_approx_f(x); }
EV float rsqrt(float x) { return rsqrtf(x); }
EV double rsqrt(double x) { return 1.0 / __builtin_sqrt(x); }
EV float fdimf(float x, float y) { return x <= y ? 0.0f : x - y; }
EV float fdim(float x, float y) { return fdimf(x, y); }
EV double fdim(double x, double y) { return x <= y ? 0.0 : x - y; }
EV void sincosf(float x, float* s, float* c) { *s = sinf(x); *c = cosf(x); }
EV void sincos(float x, float* s, float* c) { sincosf(x, s, c); }
EV void sincos(double x, double* s, double* c) { *s = sin(x); *c = cos(x); }
EV void sincospif(float x, float* s, float* c) { *s = sinpif(x); *c = cospif(x); }
EV void sincospi(double x, double* s, double* c) { *s = sinpi(x); *c = cospi(x); }
EV float ldexpf(float x, int e) { return __ev_ldexpf(x, e); }
EV float ldexp(float x, int e) { return __ev_ldexpf(x, e); }
EV double ldexp(double x, int e) { return __ev_ldexp(x, e); }
EV float scalbnf(float x, int e) { return __ev_ldexpf(x, e); }
EV float scalbn(float x, int e) { return __ev_ldexpf(x, e); }
EV double scalbn(double x, int e) { return __ev_ldexp(x, e); }
EV float normf(int n, const float* p) {
    float sum = 0.0f;
    for (int i = 0; i < n; ++i) sum = fmaf(p[i], p[i], sum);
    return sqrtf(sum);
}
EV float norm3df(float a, float b, float c) { return hypotf(hypotf(a, b), c); }
EV float norm4df(float a, float b, float c, float d) { return hypotf(hypotf(a, b), hypotf(c, d)); }
EV float rnorm3df(float a, float b, float c) { return 1.0f / norm3df(a, b, c); }
EV float rnorm4df(float a, float b, float c, float d) { return 1.0f / norm4df(a, b, c, d); }
EV float rnormf(int n, const float* p) { return 1.0f / normf(n, p); }
EV double norm(int n, const double* p) {
    double sum = 0.0;
    for (int i = 0; i < n; ++i) sum = fma(p[i], p[i], sum);
    return sqrt(sum);
}
EV double rnorm(int n, const double* p) { return 1.0 / norm(n, p); }
EV double norm3d(double a, double b, double c) { return hypot(hypot(a, b), c); }
EV double norm4d(double a, double b, double c, double d) { return hypot(hypot(a, b), hypot(c, d)); }
EV double rnorm3d(double a, double b, double c) { return 1.0 / norm3d(a, b, c); }
EV double rnorm4d(double a, double b, double c, double d) { return 1.0 / norm4d(a, b, c, d); }
EV float scalblnf(float x, long e) { return __ev_ldexpf(x, (int)(e < -9999 ? -9999 : e > 9999 ? 9999 : e)); }
EV float scalbln(float x, long e) { return scalblnf(x, e); }
EV double scalbln(double x, long e) { return __ev_ldexp(x, (int)(e < -9999 ? -9999 : e > 9999 ? 9999 : e)); }

EV bool isnan(float x) { return __builtin_isnan(x); }
EV bool isnan(double x) { return __builtin_isnan(x); }
EV bool isinf(float x) { return __builtin_isinf(x); }
EV bool isinf(double x) { return __builtin_isinf(x); }
EV bool isfinite(float x) { return __builtin_isfinite(x); }
EV bool isfinite(double x) { return __builtin_isfinite(x); }
EV bool signbit(float x) { return __float_as_int(x) < 0; }
EV bool signbit(double x) { return __double_as_longlong(x) < 0; }
EV float nanf(const char*) { return __int_as_float(0x7fffffff); }
EV double nan(const char*) { return __longlong_as_double(0x7fffffffffffffffll); }
EV long lrintf(float x) { return __nvvm_f2ll_rn(x); }
EV long lrint(double x) { return __nvvm_d2ll_rn(x); }
EV long lrint(float x) { return lrintf(x); }
EV long long llrintf(float x) { return __nvvm_f2ll_rn(x); }
EV long long llrint(double x) { return __nvvm_d2ll_rn(x); }
EV long long llrint(float x) { return llrintf(x); }
EV long lroundf(float x) { return (long)roundf(x); }
EV long lround(double x) { return (long)round(x); }
EV long lround(float x) { return lroundf(x); }
EV long long llroundf(float x) { return (long long)roundf(x); }
EV long long llround(double x) { return (long long)round(x); }
EV long long llround(float x) { return llroundf(x); }

// The parts of a number; a subnormal one is made normal first.
EV float frexpf(float x, int* exponent) {
    int shift = 0;
    if (x == 0.0f || !isfinite(x)) { *exponent = 0; return x; }
    if (fabsf(x) < 0x1p-126f) { x *= 0x1p25f; shift = 25; }
    const int bits = __float_as_int(x);
    *exponent = (bits >> 23 & 0xff) - 126 - shift;
    return __int_as_float((bits & 0x807fffff) | 0x3f000000);
}
EV double frexp(double x, int* exponent) {
    int shift = 0;
    if (x == 0.0 || !isfinite(x)) { *exponent = 0; return x; }
    if (fabs(x) < 0x1p-1022) { x *= 0x1p54; shift = 54; }
    const long long bits = __double_as_longlong(x);
    *exponent = (int)(bits >> 52 & 0x7ff) - 1022 - shift;
    return __longlong_as_double((bits & 0x800fffffffffffffll) | 0x3fe0000000000000ll);
}
EV float frexp(float x, int* exponent) { return frexpf(x, exponent); }
EV int ilogbf(float x) {
    if (x == 0.0f || isnan(x)) return -2147483647 - 1;
    if (isinf(x)) return 2147483647;
    int exponent;
    frexpf(x, &exponent);
    return exponent - 1;
}
EV int ilogb(double x) {
    if (x == 0.0 || isnan(x)) return -2147483647 - 1;
    if (isinf(x)) return 2147483647;
    int exponent;
    frexp(x, &exponent);
    return exponent - 1;
}
EV int ilogb(float x) { return ilogbf(x); }
EV float logbf(float x) { return x == 0.0f ? -INFINITY : isfinite(x) ? (float)ilogbf(x) : x * x; }
EV double logb(double x) { return x == 0.0 ? -HUGE_VAL : isfinite(x) ? (double)ilogb(x) : x * x; }
EV float modff(float x, float* whole) { *whole = truncf(x); return copysignf(isinf(x) ? 0.0f : x - *whole, x); }
EV double modf(double x, double* whole) { *whole = trunc(x); return copysign(isinf(x) ? 0.0 : x - *whole, x); }
EV float modf(float x, float* whole) { return modff(x, whole); }

EV_BOTH int abs(int x) { return x < 0 ? -x : x; }
EV_BOTH long abs(long x) { return x < 0 ? -x : x; }
EV_BOTH long long abs(long long x) { return x < 0 ? -x : x; }
EV_BOTH long labs(long x) { return abs(x); }
EV_BOTH long long llabs(long long x) { return abs(x); }
EV float abs(float x) { return __builtin_fabsf(x); }
EV double abs(double x) { return __builtin_fabs(x); }

#define EV_ORDERED(A, B, R)                                                     \
    EV_BOTH R min(A a, B b) { return (R)a < (R)b ? (R)a : (R)b; }               \
    EV_BOTH R max(A a, B b) { return (R)a < (R)b ? (R)b : (R)a; }
#define EV_SIGNED_AND_UNSIGNED(S, U) EV_ORDERED(S, S, S) EV_ORDERED(U, U, U) EV_ORDERED(S, U, U) EV_ORDERED(U, S, U)
EV_SIGNED_AND_UNSIGNED(int, unsigned int)
EV_SIGNED_AND_UNSIGNED(long, unsigned long)
EV_SIGNED_AND_UNSIGNED(long long, unsigned long long)
EV float min(float a, float b) { return __builtin_fminf(a, b); }
EV float max(float a, float b) { return __builtin_fmaxf(a, b); }
EV double min(double a, double b) { return __builtin_fmin(a, b); }
EV double max(double a, double b) { return __builtin_fmax(a, b); }
EV double min(float a, double b) { return __builtin_fmin(a, b); }
EV double max(float a, double b) { return __builtin_fmax(a, b); }
EV double min(double a, float b) { return __builtin_fmin(a, b); }
EV double max(double a, float b) { return __builtin_fmax(a, b); }
EV int umin(unsigned int a, unsigned int b) { return min(a, b); }
EV unsigned int umax(unsigned int a, unsigned int b) { return max(a, b); }
EV long long llmin(long long a, long long b) { return min(a, b); }
EV long long llmax(long long a, long long b) { return max(a, b); }
EV unsigned long long ullmin(unsigned long long a, unsigned long long b) { return min(a, b); }
EV unsigned long long ullmax(unsigned long long a, unsigned long long b) { return max(a, b); }

namespace std {
using ::abs; using ::acos; using ::acosh; using ::asin; using ::asinh; using ::atan; using ::atan2; using ::atanh; using ::cbrt;
using ::ceil; using ::copysign; using ::cos; using ::cosh; using ::erf; using ::erfc; using ::exp; using ::exp2; using ::expm1;
using ::fabs; using ::fdim; using ::floor; using ::fma; using ::fmax; using ::fmin; using ::fmod; using ::frexp; using ::hypot;
using ::ilogb; using ::isfinite; using ::isinf; using ::isnan; using ::ldexp; using ::lgamma; using ::llrint;
using ::llround; using ::log; using ::log10; using ::log1p; using ::log2; using ::logb; using ::lrint; using ::lround; using ::modf;
using ::nearbyint; using ::nextafter; using ::pow; using ::remainder; using ::rint; using ::round; using ::scalbn; using ::signbit;
using ::sin; using ::sinh; using ::sqrt; using ::tan; using ::tanh; using ::tgamma; using ::trunc;
using ::acosf; using ::asinf; using ::atanf; using ::atan2f; using ::ceilf; using ::cosf; using ::expf; using ::exp2f; using ::fabsf;
using ::floorf; using ::fmaf; using ::fmaxf; using ::fminf; using ::fmodf; using ::logf; using ::log2f; using ::log10f; using ::powf;
using ::rintf; using ::roundf; using ::sinf; using ::sqrtf; using ::tanf; using ::tanhf; using ::truncf; using ::erff; using ::expm1f;
using ::log1pf; using ::hypotf; using ::cbrtf; using ::nearbyintf; using ::lrintf; using ::lroundf; using ::copysignf;
using ::size_t; using ::ptrdiff_t; using ::int8_t; using ::int16_t; using ::int32_t; using ::int64_t; using ::uint8_t; using ::uint16_t;
using ::uint32_t; using ::uint64_t; using ::intptr_t; using ::uintptr_t;
}  // namespace std
