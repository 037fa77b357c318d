/* Conversions of half and bfloat that LLVM calls on hosts without F16C: JIT-compiled kernels may need them, and libc does not
   have them. Names, interface and results are those of compiler-rt: round to nearest, ties to even. */
#include "lanes.h"
#include "narrow.h"

/* In integers: an expression of _Float16 would call these functions. */
float __extendhfsf2(_Float16 x) {
    uint32_t bits = AS(uint16_t, x), sign = bits << 16 & 0x80000000u, magnitude = (bits & 0x7fff) << 13;
    float finite = AS(float, magnitude) * 0x1p112f;
    return AS(float, sign | (magnitude >= 0x0f800000u ? magnitude | 0x7f800000u : AS(uint32_t, finite)));
}

/* To 16 bits with `digits` of mantissa and an exponent biased by `bias`; the cut bits decide, whatever their number. */
static uint16_t shortened(double x, int digits, int bias) {
    uint64_t bits = AS(uint64_t, x), sign = bits >> 48 & 0x8000, infinity = (0x7fffu >> digits) << digits;
    if (x != x)
        return (uint16_t)(sign | infinity | 1u << (digits - 1));
    int exponent = (int)(bits >> 52 & 0x7ff) - 1023 + bias; /* as the result's field */
    uint64_t mantissa = (bits & 0xfffffffffffffull) | 1ull << 52;
    int cut = 52 - digits + (exponent < 1 ? 1 - exponent : 0);
    if (cut > 54)
        return (uint16_t)sign;
    uint64_t kept = mantissa >> cut, rest = mantissa & ((1ull << cut) - 1), half = 1ull << (cut - 1);
    kept += rest > half || (rest == half && (kept & 1));
    uint64_t y = exponent < 1 ? kept : kept + ((uint64_t)(exponent - 1) << digits); /* a carry runs into the exponent */
    return (uint16_t)(sign | (y > infinity ? infinity : y));
}

_Float16 __truncdfhf2(double x) {
    return AS(_Float16, shortened(x, 10, 15));
}

_Float16 __truncsfhf2(float x) {
    return AS(_Float16, shortened((double)x, 10, 15));
}

__bf16 __truncdfbf2(double x) {
    return AS(__bf16, shortened(x, 7, 127));
}

__bf16 __truncsfbf2(float x) {
    return AS(__bf16, shortened((double)x, 7, 127));
}
