// Types of 16 bits, their arithmetic, comparisons and functions: included once for __half, once for __nv_bfloat16.
// EV_H, EV_H2 the classes; EV_RAW, EV_RAW2 their bits; EV_E clang's own type; EV_P its name in PTX; EV_ONE the bits of 1;
// EV_WHOLE what an integer passes through on its way to the type.
// No #pragma once: it is meant to be included twice.

typedef EV_E EV_V1 __attribute__((ext_vector_type(1)));  // a vector, because clang computes single __bf16 in float
typedef EV_E EV_V2 __attribute__((ext_vector_type(2)));

struct __align__(2) EV_RAW { unsigned short x; };
struct __align__(4) EV_RAW2 { unsigned short x, y; };

struct __align__(2) EV_H {
    unsigned short __x;
    EV_H() = default;
    EV_METHOD_BOTH constexpr EV_H(const EV_RAW& raw) : __x(raw.x) {}
    EV_METHOD_BOTH EV_H(float x) : __x(__builtin_bit_cast(unsigned short, (EV_E)x)) {}
    EV_METHOD_BOTH EV_H(double x) : __x(__builtin_bit_cast(unsigned short, (EV_E)x)) {}
#define EV_FROM(T) EV_METHOD_BOTH EV_H(T x) : __x(__builtin_bit_cast(unsigned short, (EV_E)EV_WHOLE(x))) {}
    EV_FROM(short) EV_FROM(unsigned short) EV_FROM(int) EV_FROM(unsigned int) EV_FROM(long) EV_FROM(unsigned long)
    EV_FROM(long long) EV_FROM(unsigned long long)
#undef EV_FROM
    EV_METHOD_BOTH operator EV_RAW() const { return EV_RAW{__x}; }
    EV_METHOD_BOTH operator float() const { return EV_WIDEN(__x); }
    EV_METHOD_BOTH operator bool() const { return (__x & 0x7fff) != 0; }
#define EV_TO(T, CONVERT) EV_METHOD operator T() const { return (T)CONVERT((float)*this); }
    EV_TO(int, __float2int_rz) EV_TO(unsigned int, __float2uint_rz) EV_TO(long, __float2ll_rz) EV_TO(unsigned long, __float2ull_rz)
    EV_TO(long long, __float2ll_rz) EV_TO(unsigned long long, __float2ull_rz)
#undef EV_TO
#define EV_TO(T, NAME, CONVERT) EV_METHOD operator T() const { return (T)__ev_to_##NAME(CONVERT((float)*this)); }
    EV_TO(signed char, char, __float2int_rz) EV_TO(char, char, __float2int_rz) EV_TO(unsigned char, uchar, __float2uint_rz)
    EV_TO(short, short, __float2int_rz) EV_TO(unsigned short, ushort, __float2uint_rz)
#undef EV_TO
#define EV_ASSIGN(T) EV_METHOD_BOTH EV_H& operator=(T x) { return *this = EV_H(x); }
    EV_ASSIGN(float) EV_ASSIGN(double) EV_ASSIGN(short) EV_ASSIGN(unsigned short) EV_ASSIGN(int) EV_ASSIGN(unsigned int)
    EV_ASSIGN(long long) EV_ASSIGN(unsigned long long)
#undef EV_ASSIGN
    EV_METHOD_BOTH EV_H& operator=(const EV_RAW& raw) { __x = raw.x; return *this; }
};

struct __align__(4) EV_H2 {
    EV_H x, y;
    EV_H2() = default;
    EV_METHOD_BOTH constexpr EV_H2(const EV_H& a, const EV_H& b) : x(a), y(b) {}
    EV_METHOD_BOTH EV_H2(const EV_RAW2& raw) : x(EV_RAW{raw.x}), y(EV_RAW{raw.y}) {}
    EV_METHOD_BOTH EV_H2& operator=(const EV_RAW2& raw) { return *this = EV_H2(raw); }
    EV_METHOD_BOTH operator EV_RAW2() const { return EV_RAW2{x.__x, y.__x}; }
};

EV EV_V1 __ev_v(EV_H a) { return __builtin_bit_cast(EV_V1, a.__x); }
EV EV_V2 __ev_v(EV_H2 a) { return __builtin_bit_cast(EV_V2, a); }
EV EV_H __ev_h(EV_V1 a) { return EV_RAW{__builtin_bit_cast(unsigned short, a)}; }
EV EV_H2 __ev_h(EV_V2 a) { return __builtin_bit_cast(EV_H2, a); }
EV EV_H __ev_from_bits(EV_H, unsigned short bits) { return EV_RAW{bits}; }

// Arithmetic. A product and a sum become one fma where nvcc would make one, unless the name ends in _rn.
#define EV_ARITHMETIC(NAME, OP)                                                                           \
    EV EV_H NAME(EV_H a, EV_H b) { EV_CONTRACT return __ev_h(__ev_v(a) OP __ev_v(b)); }                   \
    EV EV_H NAME##_rn(EV_H a, EV_H b) { EV_EXACT return __ev_h(__ev_v(a) OP __ev_v(b)); }                 \
    EV EV_H2 NAME##2(EV_H2 a, EV_H2 b) { EV_CONTRACT return __ev_h(__ev_v(a) OP __ev_v(b)); }             \
    EV EV_H2 NAME##2_rn(EV_H2 a, EV_H2 b) { EV_EXACT return __ev_h(__ev_v(a) OP __ev_v(b)); }
#define EV_EXACT _Pragma("clang fp contract(off)")
EV_ARITHMETIC(__hadd, +)
EV_ARITHMETIC(__hsub, -)
EV_ARITHMETIC(__hmul, *)
#undef EV_ARITHMETIC
EV EV_H __hfma(EV_H a, EV_H b, EV_H c) {
    EV_H d;
    asm("fma.rn." EV_P " %0, %1, %2, %3;" : "=h"(d.__x) : "h"(a.__x), "h"(b.__x), "h"(c.__x));
    return d;
}
EV EV_H2 __hfma2(EV_H2 a, EV_H2 b, EV_H2 c) { return __ev_h(__builtin_elementwise_fma(__ev_v(a), __ev_v(b), __ev_v(c))); }
EV EV_H __hfma_relu(EV_H a, EV_H b, EV_H c) {
    EV_H d;
    asm("fma.rn.relu." EV_P " %0, %1, %2, %3;" : "=h"(d.__x) : "h"(a.__x), "h"(b.__x), "h"(c.__x));
    return d;
}
EV EV_H2 __hfma2_relu(EV_H2 a, EV_H2 b, EV_H2 c) {
    unsigned int d;
    asm("fma.rn.relu." EV_P "x2 %0, %1, %2, %3;" : "=r"(d) : "r"(__builtin_bit_cast(unsigned int, a)),
        "r"(__builtin_bit_cast(unsigned int, b)), "r"(__builtin_bit_cast(unsigned int, c)));
    return __builtin_bit_cast(EV_H2, d);
}
EV EV_H __hdiv(EV_H a, EV_H b) { return EV_H((float)a / (float)b); }
EV EV_H2 __h2div(EV_H2 a, EV_H2 b) { return EV_H2(__hdiv(a.x, b.x), __hdiv(a.y, b.y)); }
EV EV_H __hneg(EV_H a) { return EV_RAW{(unsigned short)(a.__x ^ 0x8000)}; }
EV EV_H __habs(EV_H a) { return EV_RAW{(unsigned short)(a.__x & 0x7fff)}; }
EV EV_H2 __hneg2(EV_H2 a) { return EV_H2(__hneg(a.x), __hneg(a.y)); }
EV EV_H2 __habs2(EV_H2 a) { return EV_H2(__habs(a.x), __habs(a.y)); }

// The smaller or larger; of a number and a NaN the number, with _nan the NaN.
#define EV_EXTREME(NAME, PTX)                                                                             \
    EV EV_H NAME(EV_H a, EV_H b) {                                                                        \
        EV_H d;                                                                                           \
        asm(PTX "." EV_P " %0, %1, %2;" : "=h"(d.__x) : "h"(a.__x), "h"(b.__x));                           \
        return d;                                                                                         \
    }                                                                                                     \
    EV EV_H NAME##_nan(EV_H a, EV_H b) {                                                                  \
        EV_H d;                                                                                           \
        asm(PTX ".NaN." EV_P " %0, %1, %2;" : "=h"(d.__x) : "h"(a.__x), "h"(b.__x));                       \
        return d;                                                                                         \
    }                                                                                                     \
    EV EV_H2 NAME##2(EV_H2 a, EV_H2 b) {                                                                  \
        unsigned int d;                                                                                   \
        asm(PTX "." EV_P "x2 %0, %1, %2;" : "=r"(d)                                                       \
            : "r"(__builtin_bit_cast(unsigned int, a)), "r"(__builtin_bit_cast(unsigned int, b)));        \
        return __builtin_bit_cast(EV_H2, d);                                                              \
    }                                                                                                     \
    EV EV_H2 NAME##2_nan(EV_H2 a, EV_H2 b) {                                                              \
        unsigned int d;                                                                                   \
        asm(PTX ".NaN." EV_P "x2 %0, %1, %2;" : "=r"(d)                                                   \
            : "r"(__builtin_bit_cast(unsigned int, a)), "r"(__builtin_bit_cast(unsigned int, b)));        \
        return __builtin_bit_cast(EV_H2, d);                                                              \
    }
EV_EXTREME(__hmin, "min")
EV_EXTREME(__hmax, "max")
#undef EV_EXTREME
// Saturated to [0, 1], NaN to 0.
EV EV_H __ev_saturated(EV_H x) { return __hmin(__hmax(x, EV_H(EV_RAW{0})), EV_H(EV_RAW{EV_ONE})); }
EV EV_H2 __ev_saturated(EV_H2 x) { return EV_H2(__ev_saturated(x.x), __ev_saturated(x.y)); }
EV EV_H __hadd_sat(EV_H a, EV_H b) { return __ev_saturated(__hadd_rn(a, b)); }
EV EV_H __hsub_sat(EV_H a, EV_H b) { return __ev_saturated(__hsub_rn(a, b)); }
EV EV_H __hmul_sat(EV_H a, EV_H b) { return __ev_saturated(__hmul_rn(a, b)); }
EV EV_H __hfma_sat(EV_H a, EV_H b, EV_H c) { return __ev_saturated(__hfma(a, b, c)); }
EV EV_H2 __hadd2_sat(EV_H2 a, EV_H2 b) { return __ev_saturated(__hadd2_rn(a, b)); }
EV EV_H2 __hsub2_sat(EV_H2 a, EV_H2 b) { return __ev_saturated(__hsub2_rn(a, b)); }
EV EV_H2 __hmul2_sat(EV_H2 a, EV_H2 b) { return __ev_saturated(__hmul2_rn(a, b)); }
EV EV_H2 __hfma2_sat(EV_H2 a, EV_H2 b, EV_H2 c) { return __ev_saturated(__hfma2(a, b, c)); }
EV EV_H2 __hcmadd(EV_H2 a, EV_H2 b, EV_H2 c) {  // complex a * b + c
    const EV_H re = __hfma(__hneg(a.y), b.y, __hfma(a.x, b.x, c.x));
    return EV_H2(re, __hfma(a.y, b.x, __hfma(a.x, b.y, c.y)));
}

// Comparisons; the unordered ones, with u, are also true of NaN.
EV bool __hisnan(EV_H a) { return __builtin_isnan((float)a); }
EV int __hisinf(EV_H a) { return (a.__x & 0x7fff) == EV_INF ? (a.__x >> 15 ? -1 : 1) : 0; }
EV EV_H2 __hisnan2(EV_H2 a) {
    return EV_H2(EV_RAW{(unsigned short)(__hisnan(a.x) ? EV_ONE : 0)}, EV_RAW{(unsigned short)(__hisnan(a.y) ? EV_ONE : 0)});
}
#define EV_COMPARE(NAME, PTX_ORDERED, ORDERED, UNORDERED)                                                 \
    EV bool __h##NAME(EV_H a, EV_H b) { const float x = a, y = b; return ORDERED; }                       \
    EV bool __h##NAME##u(EV_H a, EV_H b) { const float x = a, y = b; return UNORDERED; }                  \
    EV EV_H2 __h##NAME##2(EV_H2 a, EV_H2 b) { return __ev_flags(__h##NAME(a.x, b.x), __h##NAME(a.y, b.y), a); } \
    EV EV_H2 __h##NAME##u2(EV_H2 a, EV_H2 b) { return __ev_flags(__h##NAME##u(a.x, b.x), __h##NAME##u(a.y, b.y), a); } \
    EV unsigned int __h##NAME##2_mask(EV_H2 a, EV_H2 b) {                                                 \
        return (__h##NAME(a.x, b.x) ? 0xffffu : 0) | (__h##NAME(a.y, b.y) ? 0xffff0000u : 0);             \
    }                                                                                                     \
    EV unsigned int __h##NAME##u2_mask(EV_H2 a, EV_H2 b) {                                                \
        return (__h##NAME##u(a.x, b.x) ? 0xffffu : 0) | (__h##NAME##u(a.y, b.y) ? 0xffff0000u : 0);       \
    }                                                                                                     \
    EV bool __hb##NAME##2(EV_H2 a, EV_H2 b) { return __h##NAME(a.x, b.x) && __h##NAME(a.y, b.y); }         \
    EV bool __hb##NAME##u2(EV_H2 a, EV_H2 b) { return __h##NAME##u(a.x, b.x) && __h##NAME##u(a.y, b.y); }
EV EV_H2 __ev_flags(bool low, bool high, EV_H2) {
    return EV_H2(EV_RAW{(unsigned short)(low ? EV_ONE : 0)}, EV_RAW{(unsigned short)(high ? EV_ONE : 0)});
}
EV_COMPARE(eq, "eq", x == y, !(x < y || x > y))
EV_COMPARE(ne, "ne", x < y || x > y, x != y)
EV_COMPARE(lt, "lt", x < y, !(x >= y))
EV_COMPARE(le, "le", x <= y, !(x > y))
EV_COMPARE(gt, "gt", x > y, !(x <= y))
EV_COMPARE(ge, "ge", x >= y, !(x < y))
#undef EV_COMPARE

#define EV_OPERATOR(OP, F)                                                                \
    EV EV_H operator OP(const EV_H& a, const EV_H& b) { return F(a, b); }                 \
    EV EV_H& operator OP##=(EV_H& a, const EV_H& b) { return a = F(a, b); }
EV_OPERATOR(+, __hadd) EV_OPERATOR(-, __hsub) EV_OPERATOR(*, __hmul) EV_OPERATOR(/, __hdiv)
#undef EV_OPERATOR
#define EV_OPERATOR(OP, F)                                                                \
    EV EV_H2 operator OP(const EV_H2& a, const EV_H2& b) { return F(a, b); }              \
    EV EV_H2& operator OP##=(EV_H2& a, const EV_H2& b) { return a = F(a, b); }
EV_OPERATOR(+, __hadd2) EV_OPERATOR(-, __hsub2) EV_OPERATOR(*, __hmul2) EV_OPERATOR(/, __h2div)
#undef EV_OPERATOR
#define EV_OPERATOR(OP, NAME, U)                                                          \
    EV bool operator OP(const EV_H& a, const EV_H& b) { return __h##NAME##U(a, b); }      \
    EV bool operator OP(const EV_H2& a, const EV_H2& b) { return __hb##NAME##U##2(a, b); }
EV_OPERATOR(==, eq, ) EV_OPERATOR(!=, ne, u) EV_OPERATOR(<, lt, ) EV_OPERATOR(<=, le, ) EV_OPERATOR(>, gt, ) EV_OPERATOR(>=, ge, )
#undef EV_OPERATOR
EV EV_H operator+(const EV_H& a) { return a; }
EV EV_H operator-(const EV_H& a) { return __hneg(a); }
EV EV_H2 operator+(const EV_H2& a) { return a; }
EV EV_H2 operator-(const EV_H2& a) { return __hneg2(a); }
EV EV_H& operator++(EV_H& a) { return a = __hadd(a, EV_H(EV_RAW{EV_ONE})); }
EV EV_H& operator--(EV_H& a) { return a = __hsub(a, EV_H(EV_RAW{EV_ONE})); }
EV EV_H operator++(EV_H& a, int) { const EV_H old = a; ++a; return old; }
EV EV_H operator--(EV_H& a, int) { const EV_H old = a; --a; return old; }

// Functions. Those without an instruction for the type go through float.
#define EV_FUNCTION(NAME, EXPRESSION)                                                     \
    EV EV_H h##NAME(EV_H a) { const float x = a; return EV_H(EXPRESSION); }               \
    EV EV_H2 h2##NAME(EV_H2 a) { return EV_H2(h##NAME(a.x), h##NAME(a.y)); }
EV_FUNCTION(sqrt, __nvvm_sqrt_approx_f(x))
EV_FUNCTION(rsqrt, __nvvm_rsqrt_approx_f(x))
EV_FUNCTION(rcp, __nvvm_rcp_approx_ftz_f(x))
EV_FUNCTION(log, __ev_lg2(x) * 0x1.62e430p-1f)
EV_FUNCTION(log2, __ev_lg2(x))
EV_FUNCTION(log10, __ev_lg2(x) * 0x1.344136p-2f)
EV_FUNCTION(exp, __ev_ex2(x * 0x1.715476p+0f))
EV_FUNCTION(exp10, __ev_ex2(x * 0x1.a934f0p+1f))
EV_FUNCTION(sin, sinf(x))
EV_FUNCTION(cos, cosf(x))
EV_FUNCTION(tanh, tanhf(x))
EV_FUNCTION(floor, floorf(x))
EV_FUNCTION(ceil, ceilf(x))
EV_FUNCTION(trunc, truncf(x))
EV_FUNCTION(rint, rintf(x))
#undef EV_FUNCTION
#define EV_INSTRUCTION(NAME, NAME2, PTX, PTX2)                                            \
    EV EV_H NAME(EV_H a) {                                                                \
        EV_H d;                                                                           \
        asm(PTX " %0, %1;" : "=h"(d.__x) : "h"(a.__x));                                   \
        return d;                                                                         \
    }                                                                                     \
    EV EV_H2 NAME2(EV_H2 a) {                                                             \
        unsigned int d;                                                                   \
        asm(PTX2 " %0, %1;" : "=r"(d) : "r"(__builtin_bit_cast(unsigned int, a)));        \
        return __builtin_bit_cast(EV_H2, d);                                              \
    }
#if EV_NATIVE_FUNCTIONS
EV_INSTRUCTION(hexp2, h2exp2, "ex2.approx." EV_FTZ EV_P, "ex2.approx." EV_FTZ EV_P "x2")
EV_INSTRUCTION(htanh_approx, h2tanh_approx, "tanh.approx." EV_P, "tanh.approx." EV_P "x2")
#else
EV EV_H hexp2(EV_H a) { return EV_H(__ev_ex2(a)); }
EV EV_H2 h2exp2(EV_H2 a) { return EV_H2(hexp2(a.x), hexp2(a.y)); }
EV EV_H htanh_approx(EV_H a) { return EV_H(__tanhf(a)); }
EV EV_H2 h2tanh_approx(EV_H2 a) { return EV_H2(htanh_approx(a.x), htanh_approx(a.y)); }
#endif
#undef EV_INSTRUCTION

// Shuffles move the bits.
#define EV_SHUFFLE(NAME, B)                                                                                          \
    EV EV_H NAME(unsigned int mask, EV_H x, B lane, int width = 32) {                                               \
        return EV_RAW{(unsigned short)NAME(mask, (unsigned int)x.__x, lane, width)};                                \
    }                                                                                                                \
    EV EV_H2 NAME(unsigned int mask, EV_H2 x, B lane, int width = 32) {                                             \
        return __builtin_bit_cast(EV_H2, NAME(mask, __builtin_bit_cast(unsigned int, x), lane, width));             \
    }
EV_SHUFFLE(__shfl_sync, int)
EV_SHUFFLE(__shfl_up_sync, unsigned int)
EV_SHUFFLE(__shfl_down_sync, unsigned int)
EV_SHUFFLE(__shfl_xor_sync, int)
#undef EV_SHUFFLE

// Generic addresses, as in CUDA's own headers; old values come back.
EV EV_H atomicAdd(EV_H* p, EV_H x) {
    EV_H old;
    asm volatile("atom.add.noftz." EV_P " %0, [%1], %2;" : "=h"(old.__x) : "l"(p), "h"(x.__x) : "memory");
    return old;
}
EV EV_H2 atomicAdd(EV_H2* p, EV_H2 x) {
    unsigned int old;
    asm volatile("atom.add.noftz." EV_P "x2 %0, [%1], %2;" : "=r"(old) : "l"(p), "r"(__builtin_bit_cast(unsigned int, x)) : "memory");
    return __builtin_bit_cast(EV_H2, old);
}
