// Functions without an instruction of their own: calls of __ev_NAME, which the emulator's C runtime implements.
// front/externals.py is the same table for Python; a test compares the two.
//
//     X(float) and X(double), named __ev_Xf and __ev_X:
//       sin cos tan sinpi cospi asin acos atan sinh cosh tanh asinh acosh atanh exp exp10 expm1 log log2 log10 log1p
//       cbrt rcbrt erf erfc erfcx erfinv erfcinv normcdf normcdfinv lgamma tgamma j0 j1 y0 y1 cyl_bessel_i0 cyl_bessel_i1
//     X(float, float) and X(double, double): atan2 pow fmod remainder hypot rhypot nextafter
//     X(float, int) and X(double, int): ldexp
//     of double alone: exp2
#pragma once
#define EV_PURE __attribute__((device, const, nothrow))
#define EV_UNARY(X)                                  \
    extern "C" EV_PURE float __ev_##X##f(float);     \
    extern "C" EV_PURE double __ev_##X(double);      \
    EV float X##f(float x) { return __ev_##X##f(x); } \
    EV float X(float x) { return __ev_##X##f(x); }   \
    EV double X(double x) { return __ev_##X(x); }
#define EV_BINARY(X)                                                   \
    extern "C" EV_PURE float __ev_##X##f(float, float);                \
    extern "C" EV_PURE double __ev_##X(double, double);                \
    EV float X##f(float x, float y) { return __ev_##X##f(x, y); }      \
    EV float X(float x, float y) { return __ev_##X##f(x, y); }         \
    EV double X(double x, double y) { return __ev_##X(x, y); }         \
    EV_MIXED(X)

// Of two different types both count as double, as in <cmath>. A single integer stays ambiguous, as NVRTC has it.
template <typename T> struct __ev_integer {};
template <> struct __ev_integer<bool> { typedef double type; };
template <> struct __ev_integer<char> { typedef double type; };
template <> struct __ev_integer<signed char> { typedef double type; };
template <> struct __ev_integer<unsigned char> { typedef double type; };
template <> struct __ev_integer<short> { typedef double type; };
template <> struct __ev_integer<unsigned short> { typedef double type; };
template <> struct __ev_integer<int> { typedef double type; };
template <> struct __ev_integer<unsigned int> { typedef double type; };
template <> struct __ev_integer<long> { typedef double type; };
template <> struct __ev_integer<unsigned long> { typedef double type; };
template <> struct __ev_integer<long long> { typedef double type; };
template <> struct __ev_integer<unsigned long long> { typedef double type; };
template <typename T> struct __ev_number : __ev_integer<T> {};
template <> struct __ev_number<float> { typedef double type; };
template <> struct __ev_number<double> { typedef double type; };
template <typename A, typename B> struct __ev_two { typedef typename __ev_number<A>::type first; typedef typename __ev_number<B>::type type; };
template <typename A> struct __ev_two<A, A> : __ev_integer<A> {};
#define EV_MIXED(X) template <typename A, typename B> EV_STATIC typename __ev_two<A, B>::type X(A x, B y) { return X((double)x, (double)y); }

EV_UNARY(sin)
EV_UNARY(cos)
EV_UNARY(tan)
EV_UNARY(sinpi)
EV_UNARY(cospi)
EV_UNARY(asin)
EV_UNARY(acos)
EV_UNARY(atan)
EV_UNARY(sinh)
EV_UNARY(cosh)
EV_UNARY(tanh)
EV_UNARY(asinh)
EV_UNARY(acosh)
EV_UNARY(atanh)
EV_UNARY(exp)
EV_UNARY(exp10)
EV_UNARY(expm1)
EV_UNARY(log)
EV_UNARY(log2)
EV_UNARY(log10)
EV_UNARY(log1p)
EV_UNARY(cbrt)
EV_UNARY(rcbrt)
EV_UNARY(erf)
EV_UNARY(erfc)
EV_UNARY(erfcx)
EV_UNARY(erfinv)
EV_UNARY(erfcinv)
EV_UNARY(normcdf)
EV_UNARY(normcdfinv)
EV_UNARY(lgamma)
EV_UNARY(tgamma)
EV_UNARY(j0)
EV_UNARY(j1)
EV_UNARY(y0)
EV_UNARY(y1)
EV_UNARY(cyl_bessel_i0)
EV_UNARY(cyl_bessel_i1)
EV_BINARY(atan2)
EV_BINARY(pow)
EV_BINARY(fmod)
EV_BINARY(remainder)
EV_BINARY(hypot)
EV_BINARY(rhypot)
EV_BINARY(nextafter)
extern "C" EV_PURE float __ev_ldexpf(float, int);
extern "C" EV_PURE double __ev_ldexp(double, int);
extern "C" EV_PURE double __ev_exp2(double);
