/* A warp's registers as vectors of 32 elements, and macros that the C files share. */
#ifndef EV_VECTOR_H
#define EV_VECTOR_H

/* Freestanding: the host may have no libc headers. */
typedef signed char int8_t;
typedef unsigned char uint8_t;
typedef short int16_t;
typedef unsigned short uint16_t;
typedef int int32_t;
typedef unsigned int uint32_t;
typedef long long int64_t;
typedef unsigned long long uint64_t;

enum { LANES = 32 };

/* aligned(64): as the arrays are; clang would assume a vector of 32 doubles to be aligned to 256. */
#define EV_VECTOR(type, name) typedef type name __attribute__((ext_vector_type(32), aligned(64)))
EV_VECTOR(int8_t, s8x32);
EV_VECTOR(uint8_t, u8x32);
EV_VECTOR(int16_t, s16x32);
EV_VECTOR(uint16_t, u16x32);
EV_VECTOR(int32_t, s32x32);
EV_VECTOR(uint32_t, u32x32);
EV_VECTOR(int64_t, s64x32);
EV_VECTOR(uint64_t, u64x32);
EV_VECTOR(float, f32x32);
EV_VECTOR(double, f64x32);
EV_VECTOR(_Float16, f16x32);

#define EV_INLINE static inline __attribute__((always_inline))
#define LOAD(type, pointer) (*(const type *)(pointer))
#define STORE(type, pointer, value) (*(type *)(pointer) = (value))
#define AS(type, value) __builtin_bit_cast(type, value)
#define CONVERT(value, type) __builtin_convertvector(value, type)
#define FMA(a, b, c) __builtin_elementwise_fma(a, b, c)
#define ABS(x) __builtin_elementwise_abs(x)

/* The NaN that NVIDIA's instructions return (9.7.3: "the canonical NaN is 0x7fffffff"). In integers, because LLVM does not
   preserve NaN payloads. */
EV_INLINE f32x32 canonical(f32x32 x) {
    u32x32 bits = AS(u32x32, x);
    return AS(f32x32, (bits & 0x7fffffffu) > 0x7f800000u ? (u32x32)0x7fffffff : bits);
}

/* .ftz: a subnormal becomes zero and keeps its sign. */
EV_INLINE f32x32 flushed(f32x32 x) {
    u32x32 bits = AS(u32x32, x);
    return (bits & 0x7f800000u) == 0u ? AS(f32x32, bits & 0x80000000u) : x;
}

EV_INLINE f32x32 sign_of(f32x32 magnitude, f32x32 sign) {
    return AS(f32x32, (AS(u32x32, magnitude) & 0x7fffffffu) | (AS(u32x32, sign) & 0x80000000u));
}

/* Without branches: true if any lane of a comparison's result is. */
EV_INLINE int any(s32x32 condition) {
    return __builtin_reduce_or(condition) != 0;
}

/* Loops over the lanes of the mask, ascending, for code that accesses memory or depends on the order. */
#define EACH_LANE(lane, mask) for (uint32_t lane, left = (mask); left && (lane = (uint32_t)__builtin_ctz(left), 1); left &= left - 1)

#endif
