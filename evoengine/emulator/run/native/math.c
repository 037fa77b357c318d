/* The approximate instructions of 9.7.3 and 9.7.4, more accurate than PTX requires. */
#include "elementary.h"
#include "lanes.h"
#include "narrow.h"

extern float sinf(float), cosf(float);

/* sine_lanes for arguments in its range, libm for other lanes (also infinities). */
static void sine(const float *x, float *y, int quarter) {
    f32x32 angle = LOAD(f32x32, x), result = canonical(sine_lanes(angle, quarter));
    s32x32 far = ABS(angle) > TURNS_EXACT;
    if (__builtin_expect(any(far), 0))
        for (int i = 0; i < LANES; ++i)
            if (far[i])
                result[i] = quarter ? cosf(angle[i]) : sinf(angle[i]);
    STORE(f32x32, y, canonical(result));
}

EV_INLINE f32x32 rcp_lanes(f32x32 x) {
    return 1.0f / x;
}

EV_INLINE f32x32 sqrt_lanes(f32x32 x) {
    return __builtin_elementwise_sqrt(x);
}

/* In float: the two roundings stay below 1.5 ulp together. */
EV_INLINE f32x32 rsqrt_lanes(f32x32 x) {
    return 1.0f / __builtin_elementwise_sqrt(x);
}

#define APPROXIMATE(name, function)                                                                                              \
    void ev_##name##_approx_f32(const float *x, float *y) {                                                                      \
        STORE(f32x32, y, canonical(function(LOAD(f32x32, x))));                                                                  \
    }                                                                                                                            \
    void ev_##name##_approx_ftz_f32(const float *x, float *y) {                                                                  \
        STORE(f32x32, y, flushed(canonical(function(flushed(LOAD(f32x32, x))))));                                                \
    }
APPROXIMATE(ex2, exp2_lanes)
APPROXIMATE(lg2, log2_lanes)
APPROXIMATE(rcp, rcp_lanes)
APPROXIMATE(sqrt, sqrt_lanes)
APPROXIMATE(rsqrt, rsqrt_lanes)

void ev_sin_approx_f32(const float *x, float *y) {
    sine(x, y, 0);
}

void ev_cos_approx_f32(const float *x, float *y) {
    sine(x, y, 1);
}

void ev_sin_approx_ftz_f32(const float *x, float *y) {
    f32x32 angle = flushed(LOAD(f32x32, x));
    sine((const float *)&angle, y, 0);
    STORE(f32x32, y, flushed(LOAD(f32x32, y)));
}

void ev_cos_approx_ftz_f32(const float *x, float *y) {
    sine(x, y, 1); /* a subnormal angle has cosine 1, and no float has a subnormal cosine */
}

void ev_tanh_approx_f32(const float *x, float *y) {
    STORE(f32x32, y, canonical(tanh_lanes(LOAD(f32x32, x))));
}

/* "rcp.approx.ftz.f64": the high word decides, subnormals are zeros, the result's low word is 0. */
EV_INLINE f64x32 gross(f64x32 x) {
    u64x32 bits = AS(u64x32, x);
    u64x32 kept = (bits & 0x7ff0000000000000u) == 0u ? bits & 0x8000000000000000u : bits & 0xffffffff00000000u;
    /* NaN whose payload was in the low word only must not become infinity */
    return x != x ? AS(f64x32, (u64x32)0x7fffffff00000000u) : AS(f64x32, kept);
}

void ev_rcp_approx_ftz_f64(const double *x, double *y) {
    STORE(f64x32, y, gross(1.0 / gross(LOAD(f64x32, x))));
}

void ev_rsqrt_approx_ftz_f64(const double *x, double *y) {
    STORE(f64x32, y, gross(1.0 / __builtin_elementwise_sqrt(gross(LOAD(f64x32, x)))));
}

EV_INLINE u16x32 flushed_bf16(u16x32 x) {
    return (x & 0x7f80) == 0 ? x & 0x8000 : x;
}

#define IDENTITY(x) (x)
/* A pair's array has the layout of 64 single elements: two calls. */
#define NARROW(name, type, function, before, after)                                                                             \
    EV_INLINE void name##_lanes(const uint16_t *x, uint16_t *y) {                                                                \
        STORE(u16x32, y, after(narrow_##type(function(widen_##type(before(LOAD(u16x32, x)))))));                                 \
    }                                                                                                                            \
    void ev_##name(const uint16_t *x, uint16_t *y) {                                                                             \
        name##_lanes(x, y);                                                                                                      \
    }                                                                                                                            \
    void ev_##name##x2(const uint32_t *x, uint32_t *y) {                                                                         \
        name##_lanes((const uint16_t *)x, (uint16_t *)y);                                                                        \
        name##_lanes((const uint16_t *)x + LANES, (uint16_t *)y + LANES);                                                        \
    }
NARROW(ex2_approx_f16, f16, exp2_lanes, IDENTITY, IDENTITY)
NARROW(ex2_approx_ftz_bf16, bf16, exp2_lanes, flushed_bf16, flushed_bf16)
NARROW(tanh_approx_f16, f16, tanh_lanes, IDENTITY, IDENTITY)
NARROW(tanh_approx_bf16, bf16, tanh_lanes, IDENTITY, IDENTITY)
