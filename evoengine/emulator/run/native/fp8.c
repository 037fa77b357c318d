/* cvt to and from fp8, 9.7.9.21. Only .rn with .satfinite exists to fp8: too large, also infinite, becomes the largest
   finite; NaN becomes 0x7f in e4m3 (1.4.3, bias 7, no infinity) and 0x7f in e5m2 (1.5.2, bias 15) as on hardware. */
#include "lanes.h"
#include "tile.h"

/* Nearest, ties to even, at `digits` bits of mantissa: subnormal results by adding a power of two, at which the FPU then
   rounds; normal ones by the carry of the mantissa's cut part. */
EV_INLINE u32x32 rounded_fp8(f32x32 x, uint32_t digits, uint32_t bias, uint32_t largest, int relu) {
    if (relu)
        x = x <= 0.0f ? (f32x32)0.0f : x;
    u32x32 bits = AS(u32x32, x), sign = bits >> 24 & 0x80u, magnitude = bits & 0x7fffffffu;
    uint32_t cut = 23 - digits, smallest = (127 - bias + 1) << 23; /* smallest: bits of the smallest normal, 2^(1 - bias) */
    uint32_t anchor = (127 - bias + 1 + cut) << 23;                /* its last place is fp8's smallest subnormal */
    u32x32 subnormal = AS(u32x32, AS(f32x32, magnitude) + AS(float, anchor)) - anchor;
    u32x32 normal = (magnitude - ((127 - bias) << 23) + (1u << (cut - 1)) - 1u + (magnitude >> cut & 1u)) >> cut;
    u32x32 y = magnitude < smallest ? subnormal : normal;
    y = magnitude >= smallest && y > largest ? (u32x32)largest : y;
    return magnitude > 0x7f800000u ? (u32x32)0x7f : y | sign;
}

EV_INLINE u32x32 to_e4m3(f32x32 x, int relu) {
    return rounded_fp8(x, 3, 7, 0x7e, relu);
}

EV_INLINE u32x32 to_e5m2(f32x32 x, int relu) {
    return rounded_fp8(x, 2, 15, 0x7b, relu);
}

#define FP8(type, suffix, relu)                                                                                                         \
    void ev_cvt_rn_satfinite##suffix##_##type##x2_f32(const float *high, const float *low, uint16_t *y) {                               \
        u32x32 pair = to_##type(LOAD(f32x32, high), relu) << 8 | to_##type(LOAD(f32x32, low), relu);                                    \
        STORE(u16x32, y, CONVERT(pair, u16x32));                                                                                        \
    }                                                                                                                                   \
    void ev_cvt_rn_satfinite##suffix##_##type##x2_f16x2(const uint32_t *x, uint16_t *y) {                                               \
        u32x32 pair = LOAD(u32x32, x);                                                                                                  \
        pair = to_##type(element(pair, F16, 1), relu) << 8 | to_##type(element(pair, F16, 0), relu);                                    \
        STORE(u16x32, y, CONVERT(pair, u16x32));                                                                                        \
    }
FP8(e4m3, , 0)
FP8(e4m3, _relu, 1)
FP8(e5m2, , 0)
FP8(e5m2, _relu, 1)

/* Exact: f16 holds every value of both. */
#define FROM_FP8(type, kind, suffix, relu)                                                                                              \
    void ev_cvt_rn##suffix##_f16x2_##type##x2(const uint16_t *x, uint32_t *y) {                                                         \
        u32x32 pair = CONVERT(LOAD(u16x32, x), u32x32), halves[2];                                                                      \
        for (int p = 0; p < 2; ++p) {                                                                                                   \
            f32x32 value = element(pair, kind, p);                                                                                      \
            halves[p] = CONVERT(narrow_f16(relu ? (value <= 0.0f ? (f32x32)0.0f : value) : value), u32x32);                             \
        }                                                                                                                               \
        STORE(u32x32, y, halves[1] << 16 | halves[0]);                                                                                  \
    }
FROM_FP8(e4m3, E4M3, , 0)
FROM_FP8(e4m3, E4M3, _relu, 1)
FROM_FP8(e5m2, E5M2, , 0)
FROM_FP8(e5m2, E5M2, _relu, 1)
