/* The arithmetic of the tensor instructions on fragments in lane order, for all their types.

   9.7.14.5, "Matrix Fragments for mma": with g = lane / 4 and t = lane % 4, a register of A holds row g (of 8), a
   register of B column g, and both the P elements k = P t .. P t + P - 1 of it: P = 4 for 8-bit types, 2 for 16-bit
   ones, 1 for tf32. An accumulator pair holds row g, columns 2t and 2t + 1. So four lanes, 128 bits of a vector, share
   a row: to multiply column k of A by row k of B, one lane of each four is repeated over the four (a shuffle within
   128 bits), and the row of B, of which even columns meet the first accumulator and odd ones the second, is repeated
   over all eight fours. The accumulators never leave their order. */
#ifndef EV_TILE_H
#define EV_TILE_H
#include "narrow.h"

typedef float f32x4 __attribute__((ext_vector_type(4)));

typedef enum { F16, BF16, TF32, E4M3, E5M2, S8, U8 } Kind;

EV_INLINE int elements_of(Kind kind) {
    return kind == TF32 ? 1 : kind == F16 || kind == BF16 ? 2 : 4;
}

/* e4m3: no infinity, NaN is 0x7f; subnormals by an integer's conversion, as the FPU may be slow with its own. */
EV_INLINE f32x32 widen_e4m3(u32x32 byte) {
    u32x32 magnitude = byte & 0x7fu;
    u32x32 subnormal = AS(u32x32, CONVERT(AS(s32x32, magnitude), f32x32) * 0x1p-9f);
    u32x32 value = magnitude < 8u ? subnormal : (magnitude << 20) + (120u << 23);
    value = magnitude == 0x7fu ? (u32x32)0x7fc00000 : value;
    return AS(f32x32, value | (byte & 0x80u) << 24);
}

/* Element p of every lane's register as float, which holds every value of every kind. */
EV_INLINE f32x32 element(u32x32 registers, Kind kind, int p) {
    switch (kind) {
    case F16: return widen_f16(CONVERT(registers >> (uint32_t)(16 * p), u16x32));
    case BF16: return AS(f32x32, p ? registers & 0xffff0000u : registers << 16);
    case TF32: return AS(f32x32, registers & 0xffffe000u); /* "lower 13 bits are ignored" */
    case E4M3: return widen_e4m3(registers >> (uint32_t)(8 * p) & 0xffu);
    case E5M2: return widen_f16(CONVERT(registers >> (uint32_t)(8 * p) << 8, u16x32) & 0xff00);
    case S8: return CONVERT(AS(s32x32, registers << (uint32_t)(24 - 8 * p)) >> 24, f32x32);
    default: return CONVERT(AS(s32x32, registers >> (uint32_t)(8 * p) & 0xffu), f32x32);
    }
}

/* Lane 4g + t to place 8t + g / 2 for even g, 8t + 4 + g / 2 for odd g: per t a row of B, even columns first. */
EV_INLINE u32x32 rows_of_b(u32x32 b) {
    return __builtin_shufflevector(b, b, 0, 8, 16, 24, 4, 12, 20, 28, 1, 9, 17, 25, 5, 13, 21, 29, 2, 10, 18, 26, 6, 14, 22, 30, 3, 11, 19,
                                   27, 7, 15, 23, 31);
}

EV_INLINE f32x32 repeated(const float *four) {
    f32x4 v = *(const f32x4 *)four;
    return __builtin_shufflevector(v, v, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3);
}

#define OF_FOUR(v, t)                                                                                                                   \
    __builtin_shufflevector(v, v, t, t, t, t, 4 + t, 4 + t, 4 + t, 4 + t, 8 + t, 8 + t, 8 + t, 8 + t, 12 + t, 12 + t, 12 + t, 12 + t,   \
                            16 + t, 16 + t, 16 + t, 16 + t, 20 + t, 20 + t, 20 + t, 20 + t, 24 + t, 24 + t, 24 + t, 24 + t, 28 + t,     \
                            28 + t, 28 + t, 28 + t)

/* The rows of B that one register holds, as floats: [p][t][8]. */
typedef struct {
    float of[4][LANES] __attribute__((aligned(64)));
} Rows;

EV_INLINE void unpack_b(u32x32 b, Kind kind, Rows *rows) {
    u32x32 ordered = rows_of_b(b);
#pragma unroll
    for (int p = 0; p < elements_of(kind); ++p)
        STORE(f32x32, rows->of[p], element(ordered, kind, p));
}

/* even += A B for the even columns and odd += A B for the odd ones: 8 rows of A, the k of one register, ascending. */
#define RANK_ONE(t)                                                                                                                     \
    _Pragma("unroll") for (int p = 0; p < elements_of(kind); ++p) {                                                                     \
        f32x32 column = OF_FOUR(elements[p], t);                                                                                        \
        *even = FMA(column, repeated(rows->of[p] + 8 * t), *even);                                                                      \
        *odd = FMA(column, repeated(rows->of[p] + 8 * t + 4), *odd);                                                                    \
    }

EV_INLINE void multiply_register(u32x32 a, const Rows *rows, Kind kind, f32x32 *even, f32x32 *odd) {
    f32x32 elements[4];
#pragma unroll
    for (int p = 0; p < elements_of(kind); ++p)
        elements[p] = element(a, kind, p);
    RANK_ONE(0)
    RANK_ONE(1)
    RANK_ONE(2)
    RANK_ONE(3)
}

/* accumulator[4] += A B for 16 rows: a[2 depth], register 2j rows 0-7 and 2j + 1 rows 8-15 of the j-th part of k; b[depth]. */
EV_INLINE void multiply_tile(const uint32_t *a, const uint32_t *b, int depth, Kind kind_a, Kind kind_b, f32x32 *accumulator) {
    Rows rows[2];
#pragma unroll
    for (int j = 0; j < depth; ++j)
        unpack_b(LOAD(u32x32, b + j * LANES), kind_b, &rows[j]);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        f32x32 even = accumulator[2 * half], odd = accumulator[2 * half + 1];
#pragma unroll
        for (int j = 0; j < depth; ++j)
            multiply_register(LOAD(u32x32, a + (2 * j + half) * LANES), &rows[j], kind_a, &even, &odd);
        accumulator[2 * half] = even;
        accumulator[2 * half + 1] = odd;
    }
}

/* d = A B + c with accumulators of float: c[4][32], d[4][32]. */
EV_INLINE void mma_f32(const uint32_t *a, const uint32_t *b, const float *c, float *d, int depth, Kind kind_a, Kind kind_b) {
    f32x32 accumulator[4];
    for (int i = 0; i < 4; ++i)
        accumulator[i] = LOAD(f32x32, c + i * LANES);
    multiply_tile(a, b, depth, kind_a, kind_b, accumulator);
    for (int i = 0; i < 4; ++i)
        STORE(f32x32, d + i * LANES, accumulator[i]);
}

/* With accumulators of f16, two a register: c[2][32], d[2][32]. Summed in float and rounded once, at the end. */
EV_INLINE void mma_f16(const uint32_t *a, const uint32_t *b, const uint32_t *c, uint32_t *d, int depth, Kind kind_a, Kind kind_b) {
    f32x32 accumulator[4];
    for (int i = 0; i < 4; ++i)
        accumulator[i] = element(LOAD(u32x32, c + i / 2 * LANES), F16, i % 2);
    multiply_tile(a, b, depth, kind_a, kind_b, accumulator);
    for (int i = 0; i < 2; ++i) {
        u32x32 low = CONVERT(narrow_f16(accumulator[2 * i]), u32x32), high = CONVERT(narrow_f16(accumulator[2 * i + 1]), u32x32);
        STORE(u32x32, d + i * LANES, low | high << 16);
    }
}

/* With accumulators of s32. The products' sum is exact in float: at most 32 * 255^2 < 2^24. */
EV_INLINE void mma_s32(const uint32_t *a, const uint32_t *b, const int32_t *c, int32_t *d, int depth, Kind kind_a, Kind kind_b, int saturate) {
    f32x32 accumulator[4] = {0};
    multiply_tile(a, b, depth, kind_a, kind_b, accumulator);
    for (int i = 0; i < 4; ++i) {
        u32x32 product = AS(u32x32, CONVERT(accumulator[i], s32x32)), start = LOAD(u32x32, c + i * LANES);
        s32x32 sum = AS(s32x32, start + product);
        s32x32 limited = __builtin_elementwise_add_sat(AS(s32x32, start), AS(s32x32, product));
        STORE(s32x32, d + i * LANES, saturate ? limited : sum);
    }
}

#endif
