/* Float to integer, 9.7.9.21: rounded, then saturated to the type's range ("cvt ... clamps"). */
#include "lanes.h"
#include "narrow.h"

#define RNI(x) __builtin_elementwise_roundeven(x)
#define RZI(x) __builtin_elementwise_trunc(x)
#define RMI(x) __builtin_elementwise_floor(x)
#define RPI(x) __builtin_elementwise_ceil(x)

/* "NaN: zero if the source is not f64 and the destination not 64 bits, else 1 << (bits - 1)". */
#define TO_INTEGER(mode, ROUND, from, element, wide, read, to, vector, ctype, low, high, nan)                                           \
    void ev_cvt_##mode##_##to##_##from(const element *x, ctype *y) {                                                                    \
        f64x32 value = ROUND(CONVERT(read(x), f64x32));                                                                                 \
        s64x32 none = AS(s64x32, value != value), under = AS(s64x32, value <= (f64x32)(double)(low));                                 \
        s64x32 over = AS(s64x32, value >= (f64x32)(double)(high));                                                             \
        f64x32 inside = (none | under | over) != 0 ? (f64x32)0.0 : value;                                                               \
        wide result = CONVERT(inside, wide);                                                                                            \
        result = under != 0 ? (wide)(low) : over != 0 ? (wide)(high) : result;                                                          \
        STORE(vector, y, CONVERT(none != 0 ? (wide)(nan) : result, vector));                                                            \
    }
#define WITH_TYPES(mode, ROUND, from, element, read, nan)                                                                               \
    TO_INTEGER(mode, ROUND, from, element, s64x32, read, s8, s8x32, int8_t, -128, 127, nan << 7)                                        \
    TO_INTEGER(mode, ROUND, from, element, s64x32, read, u8, u8x32, uint8_t, 0, 255, nan << 7)                                          \
    TO_INTEGER(mode, ROUND, from, element, s64x32, read, s16, s16x32, int16_t, -32768, 32767, nan << 15)                                \
    TO_INTEGER(mode, ROUND, from, element, s64x32, read, u16, u16x32, uint16_t, 0, 65535, nan << 15)                                    \
    TO_INTEGER(mode, ROUND, from, element, s64x32, read, s32, s32x32, int32_t, -0x80000000ll, 0x7fffffffll, nan << 31)                  \
    TO_INTEGER(mode, ROUND, from, element, s64x32, read, u32, u32x32, uint32_t, 0, 0xffffffffll, nan << 31)                             \
    TO_INTEGER(mode, ROUND, from, element, s64x32, read, s64, s64x32, int64_t, -0x7fffffffffffffffll - 1, 0x7fffffffffffffffll,         \
               -0x7fffffffffffffffll - 1)                                                                                               \
    TO_INTEGER(mode, ROUND, from, element, u64x32, read, u64, u64x32, uint64_t, 0, 0xffffffffffffffffull, 0x8000000000000000ull)
#define READ_F16(x) widen_f16(LOAD(u16x32, x))
#define READ_BF16(x) widen_bf16(LOAD(u16x32, x))
#define READ_F32(x) LOAD(f32x32, x)
#define READ_F64(x) LOAD(f64x32, x)
#define WITH_SOURCES(mode, ROUND)                                                                                                       \
    WITH_TYPES(mode, ROUND, f16, uint16_t, READ_F16, 0ll)                                                                               \
    WITH_TYPES(mode, ROUND, bf16, uint16_t, READ_BF16, 0ll)                                                                             \
    WITH_TYPES(mode, ROUND, f32, float, READ_F32, 0ll)                                                                                  \
    WITH_TYPES(mode, ROUND, f64, double, READ_F64, 1ll)
WITH_SOURCES(rni, RNI)
WITH_SOURCES(rzi, RZI)
WITH_SOURCES(rmi, RMI)
WITH_SOURCES(rpi, RPI)
