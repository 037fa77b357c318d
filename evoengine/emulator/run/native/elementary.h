/* Elementary functions of float, 32 lanes at once, without branches.

   Polynomials were fitted by Remez's exchange for the least relative error of the whole function on the interval that is
   named, then rounded to float. Errors that are named in ulp were measured over dense samples against float64. */
#ifndef EV_ELEMENTARY_H
#define EV_ELEMENTARY_H
#include "vector.h"

/* Adding it rounds to an integer, which then is in the low bits: 1.5 * 2^23. No conversion, since one of NaN is undefined in C. */
#define ROUNDER 12582912.0f
#define ROUNDED_BITS 0x4b400000

/* value * 2^exponent in two steps, so that a subnormal result is rounded once: exponent in [-252, 254]. */
EV_INLINE f32x32 scaled(f32x32 value, s32x32 exponent) {
    s32x32 half = exponent >> 1;
    f32x32 first = AS(f32x32, (half + 127) << 23), second = AS(f32x32, (exponent - half + 127) << 23);
    return value * first * second;
}

/* NaN stays NaN: both comparisons are false for it. */
EV_INLINE f32x32 clamped(f32x32 x, float low, float high) {
    x = x < low ? (f32x32)low : x;
    return x > high ? (f32x32)high : x;
}

/* 2^x, below 1 ulp. Fitted on [-0.5005, 0.5005]: 2^-25.9. Beyond the clamp all is zero or infinity. */
EV_INLINE f32x32 exp2_lanes(f32x32 x) {
    x = clamped(x, -151.0f, 129.0f);
    f32x32 shifted = x + ROUNDER;
    f32x32 f = x - (shifted - ROUNDER);
    f32x32 p = FMA(f, (f32x32)1.535325719e-04f, (f32x32)1.339900307e-03f);
    p = FMA(f, p, (f32x32)9.618438780e-03f);
    p = FMA(f, p, (f32x32)5.550331995e-02f);
    p = FMA(f, p, (f32x32)2.402264774e-01f);
    p = FMA(f, p, (f32x32)6.931471825e-01f);
    p = FMA(f, p, (f32x32)1.0f);
    return scaled(p, AS(s32x32, shifted) - ROUNDED_BITS);
}

/* e^x, below 1 ulp. ln 2 in two parts (Cody and Waite); fitted on [-ln 2 / 2, ln 2 / 2]: 2^-27.8. */
EV_INLINE f32x32 exp_lanes(f32x32 x) {
    x = clamped(x, -104.5f, 89.0f);
    f32x32 shifted = FMA(x, (f32x32)0x1.715476p+0f, (f32x32)ROUNDER);
    f32x32 n = shifted - ROUNDER;
    f32x32 r = FMA(n, (f32x32)-0x1.62e43p-1f, x);
    r = FMA(n, (f32x32)0x1.05c61p-29f, r);
    f32x32 p = FMA(r, (f32x32)1.381446724e-03f, (f32x32)8.368780836e-03f);
    p = FMA(r, p, (f32x32)4.166839272e-02f);
    p = FMA(r, p, (f32x32)1.666651964e-01f);
    p = FMA(r, p, (f32x32)4.999999404e-01f);
    p = FMA(r * r, p, r) + 1.0f;
    return scaled(p, AS(s32x32, shifted) - ROUNDED_BITS);
}

/* x = (1 + f) * 2^e with 1 + f in [sqrt(1/2), sqrt(2)), also for a subnormal x > 0. */
EV_INLINE f32x32 split(f32x32 x, f32x32 *e) {
    s32x32 small = x < 0x1p-126f;
    s32x32 bits = AS(s32x32, small ? x * 0x1p23f : x);
    s32x32 exponent = (bits - 0x3f3504f3) >> 23;
    *e = CONVERT(exponent + (small ? (s32x32)-23 : (s32x32)0), f32x32);
    return AS(f32x32, bits - (exponent << 23)) - 1.0f;
}

/* The values of a logarithm outside (0, inf). */
EV_INLINE f32x32 log_edges(f32x32 x, f32x32 y) {
    y = x == __builtin_inff() ? x : y;
    y = x == 0.0f ? (f32x32)-__builtin_inff() : y;
    return x < 0.0f || x != x ? (f32x32)__builtin_nanf("") : y;
}

/* ln x, below 1 ulp: f - f^2 / 2 + f^3 P(f) + e ln 2, P fitted to 2^-27.2; the high part of ln 2 times e is exact. */
EV_INLINE f32x32 log_lanes(f32x32 x) {
    f32x32 e, f = split(x, &e), s = f * f;
    f32x32 p = FMA(f, (f32x32)-7.646103203e-02f, (f32x32)1.277911216e-01f);
    p = FMA(f, p, (f32x32)-1.316418648e-01f);
    p = FMA(f, p, (f32x32)1.419969648e-01f);
    p = FMA(f, p, (f32x32)-1.662276536e-01f);
    p = FMA(f, p, (f32x32)2.000129223e-01f);
    p = FMA(f, p, (f32x32)-2.500083745e-01f);
    p = FMA(f, p, (f32x32)3.333333135e-01f);
    f32x32 y = FMA(e, (f32x32)-2.12194440e-4f, f * s * p);
    y = FMA((f32x32)-0.5f, s, y) + f;
    return log_edges(x, FMA(e, (f32x32)0.693359375f, y));
}

/* log2 x, below 2 ulp: e + f log2(e) + f^2 Q(f), log2(e) in two parts, Q fitted to 2^-26.4. */
EV_INLINE f32x32 log2_lanes(f32x32 x) {
    f32x32 e, f = split(x, &e);
    f32x32 q = FMA(f, (f32x32)-1.101258695e-01f, (f32x32)1.864448041e-01f);
    q = FMA(f, q, (f32x32)-1.911258548e-01f);
    q = FMA(f, q, (f32x32)2.045650184e-01f);
    q = FMA(f, q, (f32x32)-2.396063805e-01f);
    q = FMA(f, q, (f32x32)2.885688245e-01f);
    q = FMA(f, q, (f32x32)-3.606970906e-01f);
    q = FMA(f, q, (f32x32)4.808982313e-01f);
    q = FMA(f, q, (f32x32)-7.213473320e-01f);
    f32x32 y = FMA(f, (f32x32)0x1.4ae0cp-26f, f * f * q);
    return log_edges(x, FMA(f, (f32x32)0x1.715476p+0f, y) + e);
}

/* tanh x, below 2 ulp: an odd polynomial up to 0.6 (2^-28.4), 1 - 2 / (e^2x + 1) beyond; 1 from 10 on. */
EV_INLINE f32x32 tanh_lanes(f32x32 x) {
    f32x32 s = x * x, t = clamped(ABS(x), 0.0f, 10.0f);
    f32x32 p = FMA(s, (f32x32)-5.897966679e-03f, (f32x32)2.079862542e-02f);
    p = FMA(s, p, (f32x32)-5.378471687e-02f);
    p = FMA(s, p, (f32x32)1.333193630e-01f);
    p = FMA(s, p, (f32x32)-3.333329856e-01f);
    f32x32 large = 1.0f - 2.0f / (exp_lanes(t + t) + 1.0f);
    return sign_of(t < 0.6f ? FMA(x * s, p, x) : large, x);
}

/* erf x, below 2 ulp. N. Juffa's form: x + x P(x^2) up to 475/512 (2^-25.8), 1 - e^(G(|x|) - |x|) beyond; 1 from 4 on. */
EV_INLINE f32x32 erf_lanes(f32x32 x) {
    f32x32 t = clamped(ABS(x), 0.0f, 4.0f), s = x * x;
    f32x32 p = FMA(s, (f32x32)-5.969926133e-04f, (f32x32)4.989366978e-03f);
    p = FMA(s, p, (f32x32)-2.676431648e-02f);
    p = FMA(s, p, (f32x32)1.128176674e-01f);
    p = FMA(s, p, (f32x32)-3.761249185e-01f);
    p = FMA(s, p, (f32x32)1.283791512e-01f);
    f32x32 g = FMA(t, (f32x32)-2.118716293e-05f, (f32x32)4.355424317e-04f);
    g = FMA(t, g, (f32x32)-4.176350310e-03f);
    g = FMA(t, g, (f32x32)2.513345890e-02f);
    g = FMA(t, g, (f32x32)-1.083019078e-01f);
    g = FMA(t, g, (f32x32)-6.333270073e-01f);
    g = FMA(t, g, (f32x32)-1.295247972e-01f);
    g = FMA(t, g, (f32x32)1.767385111e-04f) - t;
    return t <= 0.927734375f ? FMA(x, p, x) : sign_of(1.0f - exp_lanes(g), x);
}

/* sin (quarter = 0) or cos (quarter = 1), below 2 ulp for |x| <= TURNS_EXACT; larger ones are for libm.
   x - n pi/2 with pi/2 in three parts: the first step is exact, as both sides are multiples of 2^-24 below 1. */
#define TURNS_EXACT 100000.0f
EV_INLINE f32x32 sine_lanes(f32x32 x, int quarter) {
    f32x32 shifted = FMA(x, (f32x32)0x1.45f306p-1f, (f32x32)ROUNDER);
    f32x32 n = shifted - ROUNDER;
    f32x32 r = FMA(n, (f32x32)-0x1.921fb6p+0f, x);
    r = FMA(n, (f32x32)0x1.777a5cp-25f, r);
    r = FMA(n, (f32x32)0x1.ee59dap-50f, r);
    f32x32 s = r * r;
    f32x32 sine = FMA(s, (f32x32)-1.951789745e-04f, (f32x32)8.332187310e-03f); /* 2^-27.9 up to pi/4 */
    sine = FMA(s, sine, (f32x32)-1.666665524e-01f);
    sine = FMA(r * s, sine, r);
    f32x32 cosine = FMA(s, (f32x32)2.443232734e-05f, (f32x32)-1.388730947e-03f); /* 2^-33 up to pi/4 */
    cosine = FMA(s, cosine, (f32x32)4.166664556e-02f);
    cosine = FMA(s * s, cosine, FMA(s, (f32x32)-0.5f, (f32x32)1.0f));
    u32x32 turn = AS(u32x32, shifted) + (uint32_t)quarter;
    f32x32 y = (turn & 1u) != 0u ? cosine : sine;
    y = x == 0.0f && quarter == 0 ? x : y; /* -0 */
    return AS(f32x32, AS(u32x32, y) ^ ((turn & 2u) << 30));
}

#endif
