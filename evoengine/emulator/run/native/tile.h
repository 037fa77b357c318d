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
typedef uint16_t u16x64 __attribute__((ext_vector_type(64), aligned(64)));

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

/* A register's elements as float vectors, one for each p: which element of its row of 8 or 4 P a lane has in vector v is
   `place` below. F16 is converted in memory's order, four neighbours a row and vector, for that takes whole registers of
   halves; the others by shifts, lane 4g + t giving element P t + p. */
EV_INLINE int vector_of(Kind kind, int k) {
    return kind == F16 ? k / 4 : k % elements_of(kind);
}

EV_INLINE int place_of(Kind kind, int k) {
    return kind == F16 ? k % 4 : k / elements_of(kind);
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

#define FOURS(v, q)                                                                                                                     \
    __builtin_shufflevector(v, v, q, q + 1, q + 2, q + 3, q + 8, q + 9, q + 10, q + 11, q + 16, q + 17, q + 18, q + 19, q + 24, q + 25, \
                            q + 26, q + 27, q + 32, q + 33, q + 34, q + 35, q + 40, q + 41, q + 42, q + 43, q + 48, q + 49, q + 50,     \
                            q + 51, q + 56, q + 57, q + 58, q + 59)

/* Vector v of a register of A. */
EV_INLINE f32x32 part_of_a(u32x32 a, Kind kind, int v) {
    if (kind != F16)
        return element(a, kind, v);
    u16x64 halves = AS(u16x64, a);
    return widen_f16(v ? FOURS(halves, 4) : FOURS(halves, 0));
}

/* Lane 4g + t to place 8t + g / 2 for even g, 8t + 4 + g / 2 for odd g: per t a row of B, even columns first. */
EV_INLINE u32x32 rows_of_b(u32x32 b) {
    return __builtin_shufflevector(b, b, 0, 8, 16, 24, 4, 12, 20, 28, 1, 9, 17, 25, 5, 13, 21, 29, 2, 10, 18, 26, 6, 14, 22, 30, 3, 11, 19,
                                   27, 7, 15, 23, 31);
}

/* The same of halves, of which 8g + k is row k, column g: four rows a vector. */
#define ROW(k) k, k + 16, k + 32, k + 48, k + 8, k + 24, k + 40, k + 56
#define FOUR_ROWS(v, k) __builtin_shufflevector(v, v, ROW(k), ROW(k + 1), ROW(k + 2), ROW(k + 3))

/* Vector v of a register of B: at 8 place_of(k) the row k. */
EV_INLINE f32x32 part_of_b(u32x32 b, Kind kind, int v) {
    if (kind != F16)
        return element(rows_of_b(b), kind, v);
    u16x64 halves = AS(u16x64, b);
    return widen_f16(v ? FOUR_ROWS(halves, 4) : FOUR_ROWS(halves, 0));
}

EV_INLINE f32x32 repeated(const float *four) {
    f32x4 v = *(const f32x4 *)four;
    return __builtin_shufflevector(v, v, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3);
}

#define OF_FOUR(v, t)                                                                                                                   \
    __builtin_shufflevector(v, v, t, t, t, t, 4 + t, 4 + t, 4 + t, 4 + t, 8 + t, 8 + t, 8 + t, 8 + t, 12 + t, 12 + t, 12 + t, 12 + t,   \
                            16 + t, 16 + t, 16 + t, 16 + t, 20 + t, 20 + t, 20 + t, 20 + t, 24 + t, 24 + t, 24 + t, 24 + t, 28 + t,     \
                            28 + t, 28 + t, 28 + t)

/* One lane of each four, repeated over the four. */
EV_INLINE f32x32 of_four(f32x32 v, int t) {
    switch (t) {
    case 0: return OF_FOUR(v, 0);
    case 1: return OF_FOUR(v, 1);
    case 2: return OF_FOUR(v, 2);
    default: return OF_FOUR(v, 3);
    }
}

/* The elements of one register as floats. */
typedef struct {
    float of[4][LANES] __attribute__((aligned(64)));
} Part;

EV_INLINE void unpack_a(u32x32 a, Kind kind, Part *part) {
#pragma unroll
    for (int v = 0; v < elements_of(kind); ++v)
        STORE(f32x32, part->of[v], part_of_a(a, kind, v));
}

EV_INLINE void unpack_b(u32x32 b, Kind kind, Part *part) {
#pragma unroll
    for (int v = 0; v < elements_of(kind); ++v)
        STORE(f32x32, part->of[v], part_of_b(b, kind, v));
}

/* Tiles of 16 x 8 results: one, or two that share A and lie side by side, or two that share B, one below the other. */
typedef enum { ONE, SIDE_BY_SIDE, STACKED } Tiles;

EV_INLINE int count_of(Tiles tiles) {
    return tiles == ONE ? 1 : 2;
}

/* accumulator[2 i], [2 i + 1] += even and odd columns of A B, for `registers` of A and the k of one register, ascending. A second
   tile that lies beside the first has its accumulators four further on. */
EV_INLINE void multiply_parts(const Part *a, int registers, Kind kind_a, const Part *b, int across, Kind kind_b, f32x32 *accumulator) {
#pragma unroll
    for (int k = 0; k < 4 * elements_of(kind_a); ++k) {
        f32x32 columns[2];
#pragma unroll
        for (int i = 0; i < registers; ++i)
            columns[i] = of_four(LOAD(f32x32, a[i].of[vector_of(kind_a, k)]), place_of(kind_a, k));
#pragma unroll
        for (int n = 0; n < across; ++n) {
            const float *row = b[n].of[vector_of(kind_b, k)] + 8 * place_of(kind_b, k);
#pragma unroll
            for (int i = 0; i < registers; ++i) {
                f32x32 *sums = accumulator + 4 * n + 2 * i;
                sums[0] = FMA(columns[i], repeated(row), sums[0]);
                sums[1] = FMA(columns[i], repeated(row + 4), sums[1]);
            }
        }
    }
}

/* Whether a CPU's registers hold the accumulators of two tiles: AVX-512 has 32 of 64 bytes, AVX2 only 16 of 32, enough for 8 rows. */
#ifdef __AVX512F__
enum { WIDE = 1 };
#else
enum { WIDE = 0 };
#endif

/* The same for all k and registers first .. end - 1 of A's rows, of which there are two a tile. */
EV_INLINE void multiply_rows(const uint32_t *a, int first, int end, const uint32_t *b, int across, int depth, Kind kind_a, Kind kind_b,
                             f32x32 *accumulator) {
    const int together = WIDE && elements_of(kind_a) <= 2 ? 2 : 1;
#pragma unroll
    for (int j = 0; j < depth; ++j) {
        Part rows[2];
#pragma unroll
        for (int n = 0; n < across; ++n)
            unpack_b(LOAD(u32x32, b + (n * depth + j) * LANES), kind_b, &rows[n]);
#pragma unroll
        for (int row = first; row < end; row += together) {
            Part columns[2];
#pragma unroll
            for (int i = row; i < row + together; ++i)
                unpack_a(LOAD(u32x32, a + (i / 2 * 2 * depth + 2 * j + i % 2) * LANES), kind_a, &columns[i - row]);
            multiply_parts(columns, together, kind_a, rows, across, kind_b, accumulator + 2 * row);
        }
    }
}

/* accumulator[4 tiles] += A B, tile after tile: a[2 depth], register 2j rows 0-7 and 2j + 1 rows 8-15 of the j-th part of k;
   b[depth]; of what the tiles do not share, the second's follow the first's. */
EV_INLINE void multiply_tiles(const uint32_t *a, const uint32_t *b, int depth, Kind kind_a, Kind kind_b, Tiles tiles, f32x32 *accumulator) {
    const int rows = tiles == STACKED ? 4 : 2, at_once = WIDE ? rows : 1;
#pragma unroll
    for (int first = 0; first < rows; first += at_once)
        multiply_rows(a, first, first + at_once, b, tiles == SIDE_BY_SIDE ? 2 : 1, depth, kind_a, kind_b, accumulator);
}

/* d = A B + c with accumulators of float: c[4][32], d[4][32] a tile. */
EV_INLINE void mma_f32(const uint32_t *a, const uint32_t *b, const float *c, float *d, int depth, Kind kind_a, Kind kind_b, Tiles tiles) {
    f32x32 accumulator[8];
    const int registers = 4 * count_of(tiles);
    for (int i = 0; i < registers; ++i)
        accumulator[i] = LOAD(f32x32, c + i * LANES);
    multiply_tiles(a, b, depth, kind_a, kind_b, tiles, accumulator);
    for (int i = 0; i < registers; ++i)
        STORE(f32x32, d + i * LANES, accumulator[i]);
}

/* With accumulators of f16, two a register: c[2][32], d[2][32] a tile. Summed in float and rounded once, at the end. */
EV_INLINE void mma_f16(const uint32_t *a, const uint32_t *b, const uint32_t *c, uint32_t *d, int depth, Kind kind_a, Kind kind_b,
                       Tiles tiles) {
    f32x32 accumulator[8];
    const int registers = 2 * count_of(tiles);
    for (int i = 0; i < 2 * registers; ++i)
        accumulator[i] = element(LOAD(u32x32, c + i / 2 * LANES), F16, i % 2);
    multiply_tiles(a, b, depth, kind_a, kind_b, tiles, accumulator);
    for (int i = 0; i < registers; ++i) {
        u32x32 low = CONVERT(narrow_f16(accumulator[2 * i]), u32x32), high = CONVERT(narrow_f16(accumulator[2 * i + 1]), u32x32);
        STORE(u32x32, d + i * LANES, low | high << 16);
    }
}

/* With accumulators of s32. The products' sum is exact in float: at most 32 * 255^2 < 2^24. */
EV_INLINE void mma_s32(const uint32_t *a, const uint32_t *b, const int32_t *c, int32_t *d, int depth, Kind kind_a, Kind kind_b, Tiles tiles,
                       int saturate) {
    f32x32 accumulator[8] = {0};
    multiply_tiles(a, b, depth, kind_a, kind_b, tiles, accumulator);
    for (int i = 0; i < 4 * count_of(tiles); ++i) {
        u32x32 product = AS(u32x32, CONVERT(accumulator[i], s32x32)), start = LOAD(u32x32, c + i * LANES);
        s32x32 sum = AS(s32x32, start + product);
        s32x32 limited = __builtin_elementwise_add_sat(AS(s32x32, start), AS(s32x32, product));
        STORE(s32x32, d + i * LANES, saturate ? limited : sum);
    }
}

#endif
