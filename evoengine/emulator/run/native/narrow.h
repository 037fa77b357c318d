/* f16 and bf16 to float and back, to the nearest. */
#ifndef EV_NARROW_H
#define EV_NARROW_H
#include "vector.h"

#ifdef __F16C__
EV_INLINE f32x32 widen_f16(u16x32 x) {
    return CONVERT(AS(f16x32, x), f32x32);
}
#else
/* Exponent and mantissa moved into place and the exponent's bias corrected by a product, which normalises subnormals too. */
EV_INLINE f32x32 widen_f16(u16x32 x) {
    u32x32 bits = CONVERT(x, u32x32), magnitude = (bits & 0x7fffu) << 13;
    f32x32 finite = AS(f32x32, magnitude) * 0x1p112f;
    u32x32 value = magnitude >= 0x0f800000u ? magnitude | 0x7f800000u : AS(u32x32, finite);
    return AS(f32x32, value | (bits & 0x8000u) << 16);
}
#endif

EV_INLINE f32x32 widen_bf16(u16x32 x) {
    return AS(f32x32, CONVERT(x, u32x32) << 16);
}

/* To the nearest, ties to even; NaN becomes 0x7fff as on a GPU. */
EV_INLINE u16x32 narrow_bf16(f32x32 x) {
    u32x32 bits = AS(u32x32, x);
    bits += 0x7fffu + (bits >> 16 & 1u);
    return CONVERT((x != x ? (u32x32)0x7fff0000 : bits) >> 16, u16x32);
}

#ifdef __F16C__
EV_INLINE u16x32 narrow_f16(f32x32 x) {
    u16x32 y = AS(u16x32, CONVERT(x, f16x32));
    return (y & 0x7fff) > 0x7c00 ? (u16x32)0x7fff : y;
}
#else
/* In integers. Normal: the mantissa's cut part rounds up by carry. Subnormal: adding 0.5 lets the FPU round at 2^-24. */
EV_INLINE u16x32 narrow_f16(f32x32 x) {
    u32x32 bits = AS(u32x32, x), sign = bits >> 16 & 0x8000u, magnitude = bits & 0x7fffffffu;
    u32x32 normal = (magnitude + 0xc8000fffu + (magnitude >> 13 & 1u)) >> 13;
    u32x32 subnormal = AS(u32x32, AS(f32x32, magnitude) + 0.5f) - 0x3f000000u;
    u32x32 y = magnitude < 0x38800000u ? subnormal : normal;
    y = magnitude >= 0x477ff000u ? (u32x32)0x7c00 : y; /* from 65520 on: infinity */
    y = magnitude > 0x7f800000u ? (u32x32)0x7fff : y | sign;
    return CONVERT(y, u16x32);
}
#endif

#endif
