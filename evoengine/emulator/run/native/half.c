/* f16, bf16 and tf32: arithmetic with one rounding, and conversions in every rounding mode (9.7.4, 9.7.9.21).

   add, sub and mul in float and then rounded are right: float has more than twice the digits and two more, for which the
   double rounding is known to be harmless (Figueroa 1995), and sums below bf16's normal range are exact. fma is not: its
   exact sum is rounded to odd first, after which any shorter rounding is right (Boldo and Melquiond 2008). */
#include "lanes.h"
#include "narrow.h"

typedef enum { RN, RZ, RM, RP } Rounding;
typedef enum { PLAIN, SAT, RELU } Limit;

/* The double as float, rounded to odd: an inexact result is the neighbour whose last bit is 1. */
EV_INLINE f32x32 odd_float(f64x32 x) {
    f32x32 y = CONVERT(x, f32x32);
    f64x32 back = CONVERT(y, f64x32);
    s32x32 above = CONVERT(ABS(back) > ABS(x), s32x32), inexact = CONVERT(back != x, s32x32);
    return AS(f32x32, (AS(s32x32, y) + above) | (inexact & 1));
}

/* x + y rounded to odd, by the exact error of the sum (Knuth's TwoSum); not finite: the FPU's result. */
#define ODD_SUM(name, real, integer)                                                                                                    \
    EV_INLINE real name(real x, real y) {                                                                                               \
        real sum = x + y, part = sum - x, error = (x - (sum - part)) + (y - part);                                                      \
        integer bits = AS(integer, sum), outward = (error > 0) == (sum > 0) ? (integer)1 : (integer)-1;                                 \
        return AS(real, (error < 0 || error > 0) && (bits & 1) == 0 ? bits + outward : bits);                                           \
    }
ODD_SUM(odd_sum, f32x32, s32x32)
ODD_SUM(odd_sum_wide, f64x32, s64x32)

/* A rounding to the nearest, moved by one place where the mode asks for the other neighbour. */
#define ROUNDED(type)                                                                                                                   \
    EV_INLINE u16x32 round_##type(f32x32 x, Rounding mode) {                                                                            \
        u16x32 y = narrow_##type(x);                                                                                                    \
        f32x32 back = widen_##type(y);                                                                                                  \
        s32x32 above = back > x, below = back < x, negative = AS(s32x32, x) < 0;                                                        \
        s32x32 shrink = mode == RZ ? (negative ? below : above) : mode == RM ? above & ~negative : mode == RP ? below & negative : 0;   \
        s32x32 grow = mode == RM ? above & negative : mode == RP ? below & ~negative : 0;                                               \
        return AS(u16x32, AS(s16x32, y) + CONVERT(shrink, s16x32) - CONVERT(grow, s16x32));                                             \
    }
ROUNDED(f16)
ROUNDED(bf16)

/* .sat: into [0, 1], NaN becomes +0. .relu: what is negative becomes +0, NaN stays. */
EV_INLINE f32x32 limited(f32x32 x, Limit limit) {
    if (limit == SAT)
        return x > 0.0f ? (x > 1.0f ? (f32x32)1.0f : x) : (f32x32)0.0f;
    return limit == RELU ? (x <= 0.0f ? (f32x32)0.0f : x) : x;
}

EV_INLINE u16x32 flushed_narrow(u16x32 x, uint16_t exponent, int flush) {
    return flush ? ((x & exponent) == 0 ? x & 0x8000 : x) : x;
}

EV_INLINE f32x32 fma_f16(f32x32 a, f32x32 b, f32x32 c) {
    return odd_sum(a * b, c); /* 22 bits: the product is exact */
}

EV_INLINE f32x32 fma_bf16(f32x32 a, f32x32 b, f32x32 c) {
    return odd_float(odd_sum_wide(CONVERT(a, f64x32) * CONVERT(b, f64x32), CONVERT(c, f64x32)));
}

#define ADD(type, a, b, c) ((a) + (b))
#define SUB(type, a, b, c) ((a) - (b))
#define MUL(type, a, b, c) ((a) * (b))
#define FUSED(type, a, b, c) fma_##type(a, b, c)
#define READ(type, exponent, flush, pointer) widen_##type(flushed_narrow(LOAD(u16x32, pointer), exponent, flush))

/* A pair's array has the layout of 64 single elements. */
#define ARITHMETIC(name, type, exponent, operation, limit, flush)                                                                       \
    EV_INLINE void name##_lanes(const uint16_t *a, const uint16_t *b, const uint16_t *c, uint16_t *d) {                                 \
        f32x32 x = READ(type, exponent, flush, a), y = READ(type, exponent, flush, b), z = READ(type, exponent, flush, c);              \
        (void)z;                                                                                                                        \
        u16x32 result = narrow_##type(limited(operation(type, x, y, z), limit));                                                        \
        STORE(u16x32, d, flushed_narrow(result, exponent, flush));                                                                      \
    }
#define BINARY(operator, type, exponent, operation, suffix, limit, flush)                                                               \
    ARITHMETIC(operator##suffix##_##type, type, exponent, operation, limit, flush)                                                      \
    void ev_##operator##suffix##_##type(const uint16_t *x, const uint16_t *y, uint16_t *z) {                                            \
        operator##suffix##_##type##_lanes(x, y, x, z);                                                                                  \
    }                                                                                                                                   \
    void ev_##operator##suffix##_##type##x2(const uint32_t *x, const uint32_t *y, uint32_t *z) {                                        \
        const uint16_t *a = (const uint16_t *)x, *b = (const uint16_t *)y;                                                              \
        operator##suffix##_##type##_lanes(a, b, a, (uint16_t *)z);                                                                      \
        operator##suffix##_##type##_lanes(a + LANES, b + LANES, a + LANES, (uint16_t *)z + LANES);                                      \
    }
#define TERNARY(type, exponent, suffix, limit, flush)                                                                                   \
    ARITHMETIC(fma##suffix##_##type, type, exponent, FUSED, limit, flush)                                                               \
    void ev_fma##suffix##_##type(const uint16_t *a, const uint16_t *b, const uint16_t *c, uint16_t *d) {                                \
        fma##suffix##_##type##_lanes(a, b, c, d);                                                                                       \
    }                                                                                                                                   \
    void ev_fma##suffix##_##type##x2(const uint32_t *a, const uint32_t *b, const uint32_t *c, uint32_t *d) {                            \
        const uint16_t *x = (const uint16_t *)a, *y = (const uint16_t *)b, *z = (const uint16_t *)c;                                    \
        fma##suffix##_##type##_lanes(x, y, z, (uint16_t *)d);                                                                           \
        fma##suffix##_##type##_lanes(x + LANES, y + LANES, z + LANES, (uint16_t *)d + LANES);                                           \
    }
#define ALL_BINARY(operator, operation)                                                                                                 \
    BINARY(operator, f16, 0x7c00, operation, , PLAIN, 0)                                                                                \
    BINARY(operator, f16, 0x7c00, operation, _sat, SAT, 0)                                                                              \
    BINARY(operator, f16, 0x7c00, operation, _ftz, PLAIN, 1)                                                                            \
    BINARY(operator, f16, 0x7c00, operation, _ftz_sat, SAT, 1)                                                                          \
    BINARY(operator, bf16, 0x7f80, operation, , PLAIN, 0)
ALL_BINARY(add, ADD)
ALL_BINARY(sub, SUB)
ALL_BINARY(mul, MUL)
TERNARY(f16, 0x7c00, , PLAIN, 0)
TERNARY(f16, 0x7c00, _sat, SAT, 0)
TERNARY(f16, 0x7c00, _relu, RELU, 0)
TERNARY(f16, 0x7c00, _ftz, PLAIN, 1)
TERNARY(f16, 0x7c00, _ftz_sat, SAT, 1)
TERNARY(f16, 0x7c00, _ftz_relu, RELU, 1)
TERNARY(bf16, 0x7f80, , PLAIN, 0)
TERNARY(bf16, 0x7f80, _relu, RELU, 0)

/* min and max: a NaN is ignored unless .NaN is given; -0 is below +0. By the order of sign and magnitude as integers. */
EV_INLINE u16x32 extreme(u16x32 x, u16x32 y, uint16_t infinity, int largest, int nan_wins) {
    s16x32 a = AS(s16x32, x), b = AS(s16x32, y);
    s16x32 key_a = a < 0 ? a ^ 0x7fff : a, key_b = b < 0 ? b ^ 0x7fff : b;
    u16x32 z = (largest ? key_a > key_b : key_a < key_b) ? x : y;
    s16x32 nan_a = (x & 0x7fff) > infinity, nan_b = (y & 0x7fff) > infinity;
    z = nan_a ? y : nan_b ? x : z;
    return (nan_wins ? nan_a | nan_b : nan_a & nan_b) ? (u16x32)0x7fff : z;
}

#define EXTREME(name, type, infinity, largest, nan_wins)                                                                                \
    void ev_##name##_##type(const uint16_t *x, const uint16_t *y, uint16_t *z) {                                                        \
        STORE(u16x32, z, extreme(LOAD(u16x32, x), LOAD(u16x32, y), infinity, largest, nan_wins));                                       \
    }                                                                                                                                   \
    void ev_##name##_##type##x2(const uint32_t *x, const uint32_t *y, uint32_t *z) {                                                    \
        ev_##name##_##type((const uint16_t *)x, (const uint16_t *)y, (uint16_t *)z);                                                    \
        ev_##name##_##type((const uint16_t *)x + LANES, (const uint16_t *)y + LANES, (uint16_t *)z + LANES);                            \
    }
#define EXTREMES(type, infinity)                                                                                                        \
    EXTREME(min, type, infinity, 0, 0)                                                                                                  \
    EXTREME(max, type, infinity, 1, 0)                                                                                                  \
    EXTREME(min_nan, type, infinity, 0, 1)                                                                                              \
    EXTREME(max_nan, type, infinity, 1, 1)
EXTREMES(f16, 0x7c00)
EXTREMES(bf16, 0x7f80)

/* ---- conversions ---------------------------------------------------------------------------------------------------- */

EV_INLINE f64x32 wide_limited(f64x32 x, Limit limit) {
    if (limit == SAT)
        return x > 0.0 ? (x > 1.0 ? (f64x32)1.0 : x) : (f64x32)0.0;
    return limit == RELU ? (x <= 0.0 ? (f64x32)0.0 : x) : x;
}

/* An integer of 64 bits as a double with the bits that do not fit joined into the last one that does: rounded to odd. */
EV_INLINE f64x32 odd_double(u64x32 magnitude) {
    u64x32 joined = ((magnitude >> 11) | ((magnitude & 2047u) != 0u ? (u64x32)1 : (u64x32)0)) << 11;
    return CONVERT(magnitude >> 53 != 0u ? joined : magnitude, f64x32);
}

#define NARROWING(mode, MODE, suffix, limit, type)                                                                                      \
    void ev_cvt_##mode##suffix##_##type##_f32(const float *x, uint16_t *y) {                                                            \
        STORE(u16x32, y, round_##type(limited(LOAD(f32x32, x), limit), MODE));                                                          \
    }                                                                                                                                   \
    void ev_cvt_##mode##suffix##_##type##_f64(const double *x, uint16_t *y) {                                                           \
        STORE(u16x32, y, round_##type(odd_float(wide_limited(LOAD(f64x32, x), limit)), MODE));                                          \
    }                                                                                                                                   \
    void ev_cvt_##mode##suffix##_##type##x2_f32(const float *high, const float *low, uint32_t *z) {                                     \
        u32x32 upper = CONVERT(round_##type(limited(LOAD(f32x32, high), limit), MODE), u32x32);                                         \
        STORE(u32x32, z, upper << 16 | CONVERT(round_##type(limited(LOAD(f32x32, low), limit), MODE), u32x32));                         \
    }
#define FROM_INTEGER(mode, MODE, type)                                                                                                  \
    void ev_cvt_##mode##_##type##_u64(const uint64_t *x, uint16_t *y) {                                                                 \
        STORE(u16x32, y, round_##type(odd_float(odd_double(LOAD(u64x32, x))), MODE));                                                   \
    }                                                                                                                                   \
    void ev_cvt_##mode##_##type##_s64(const int64_t *x, uint16_t *y) {                                                                  \
        s64x32 value = LOAD(s64x32, x), sign = value >> 63;                                                                             \
        f64x32 magnitude = odd_double(AS(u64x32, (value ^ sign) - sign));                                                               \
        STORE(u16x32, y, round_##type(odd_float(sign != 0 ? -magnitude : magnitude), MODE));                                            \
    }
#define TO_NARROW(mode, MODE, type)                                                                                                     \
    NARROWING(mode, MODE, , PLAIN, type)                                                                                                \
    NARROWING(mode, MODE, _sat, SAT, type)                                                                                              \
    NARROWING(mode, MODE, _relu, RELU, type)                                                                                            \
    FROM_INTEGER(mode, MODE, type)
#define EVERY_MODE(each, ...) each(rn, RN, __VA_ARGS__) each(rz, RZ, __VA_ARGS__) each(rm, RM, __VA_ARGS__) each(rp, RP, __VA_ARGS__)
EVERY_MODE(TO_NARROW, f16)
EVERY_MODE(TO_NARROW, bf16)

void ev_cvt_f32_f16(const uint16_t *x, float *y) {
    STORE(f32x32, y, canonical(widen_f16(LOAD(u16x32, x))));
}

void ev_cvt_f32_bf16(const uint16_t *x, float *y) {
    STORE(f32x32, y, canonical(widen_bf16(LOAD(u16x32, x))));
}

/* tf32 has 10 bits of mantissa in a register of float; the other 13 become 0. */
#define TF32(name, half, limit)                                                                                                         \
    void ev_cvt_##name##_tf32_f32(const float *x, uint32_t *y) {                                                                        \
        f32x32 value = limited(LOAD(f32x32, x), limit);                                                                                 \
        u32x32 bits = AS(u32x32, value);                                                                                                \
        bits = (bits + (half)) & 0xffffe000u;                                                                                           \
        STORE(u32x32, y, value != value ? (u32x32)0x7fffffff : bits);                                                                   \
    }
TF32(rna, 0x1000u, PLAIN)
TF32(rn, 0xfffu + (bits >> 13 & 1u), PLAIN)
TF32(rz, 0u, PLAIN)
TF32(rn_relu, 0xfffu + (bits >> 13 & 1u), RELU)
TF32(rz_relu, 0u, RELU)
