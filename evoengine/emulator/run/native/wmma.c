/* wmma.load, wmma.store and wmma.mma, 9.7.14.4, and ldmatrix and stmatrix, 9.7.14.5.15-16.

   PTX leaves the layout of wmma's fragments open. Here they are those of mma.sync, in which a register holds a block of
   8 rows (of A) or columns (of B) by 16 bytes of k:
     m16n16k16  a: rows 0-7 and 8-15 of the first half of k, then of the second;
                b: columns 0-7 of both halves of k, then columns 8-15;
                accumulators of f32: row = lane / 4 + 8 (i / 2 % 2), column = lane % 4 * 2 + i % 2 + 8 (i / 4): what is
                commonly observed on hardware; of f16: two of those a register
     m32n8k16   a: as two m16 tiles, one below the other; b: as above, only columns 0-7; accumulators: the two tiles'
     m8n32k16   the transposed product: a and b change roles, accumulators hold the transposed matrix of m32n8k16
   f16 fragments have 8 registers in every shape: where fewer are needed, the others repeat them, as on hardware. */
#include "lanes.h"
#include "rows.h"
#include "tile.h"

typedef uint8_t u8x16 __attribute__((ext_vector_type(16), aligned(1)));
typedef uint32_t any32 __attribute__((aligned(1)));
typedef uint32_t u32x64 __attribute__((ext_vector_type(64), aligned(64)));

EV_INLINE u32x32 joined_8(const u32x8 *lines) {
    u32x16 low = __builtin_shufflevector(lines[0], lines[1], TO_16), high = __builtin_shufflevector(lines[2], lines[3], TO_16);
    return __builtin_shufflevector(low, high, TO_32);
}

/* One register: 8 rows of 16 bytes; four lanes a row. */
EV_INLINE u32x32 block_of(const u32x4 *rows) {
    return __builtin_shufflevector(joined_4(rows), joined_4(rows + 4), TO_32);
}

/* The same of rows that lie `pitch` bytes apart. */
EV_INLINE u32x32 load_block(const uint8_t *first, int64_t pitch) {
    u32x4 rows[8];
#pragma unroll
    for (int g = 0; g < 8; ++g)
        rows[g] = *(const u32x4 *)(first + g * pitch);
    return block_of(rows);
}

/* Where an 8 x 8 matrix in rows of memory has what lanes want: as 16-bit elements transposed, as accumulators of even and odd
   columns, of the matrix and of its transpose; and back. Lane 4g + t is row g, columns 2t and 2t + 1. */
#define TURNED_16                                                                                                                       \
    0, 8, 16, 24, 32, 40, 48, 56, 1, 9, 17, 25, 33, 41, 49, 57, 2, 10, 18, 26, 34, 42, 50, 58, 3, 11, 19, 27, 35, 43, 51, 59, 4,        \
    12, 20, 28, 36, 44, 52, 60, 5, 13, 21, 29, 37, 45, 53, 61, 6, 14, 22, 30, 38, 46, 54, 62, 7, 15, 23, 31, 39, 47, 55, 63
#define EVEN                                                                                                                            \
    0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30, 32, 34, 36, 38, 40, 42, 44, 46, 48, 50, 52, 54, 56, 58, 60, 62
#define ODD                                                                                                                             \
    1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31, 33, 35, 37, 39, 41, 43, 45, 47, 49, 51, 53, 55, 57, 59, 61, 63
#define TURNED_EVEN                                                                                                                     \
    0, 16, 32, 48, 1, 17, 33, 49, 2, 18, 34, 50, 3, 19, 35, 51, 4, 20, 36, 52, 5, 21, 37, 53, 6, 22, 38, 54, 7, 23, 39, 55
#define TURNED_ODD                                                                                                                      \
    8, 24, 40, 56, 9, 25, 41, 57, 10, 26, 42, 58, 11, 27, 43, 59, 12, 28, 44, 60, 13, 29, 45, 61, 14, 30, 46, 62, 15, 31, 47, 63
#define JOINED                                                                                                                          \
    0, 32, 1, 33, 2, 34, 3, 35, 4, 36, 5, 37, 6, 38, 7, 39, 8, 40, 9, 41, 10, 42, 11, 43, 12, 44, 13, 45, 14, 46, 15, 47, 16, 48,       \
    17, 49, 18, 50, 19, 51, 20, 52, 21, 53, 22, 54, 23, 55, 24, 56, 25, 57, 26, 58, 27, 59, 28, 60, 29, 61, 30, 62, 31, 63
#define TURNED_JOINED                                                                                                                   \
    0, 4, 8, 12, 16, 20, 24, 28, 32, 36, 40, 44, 48, 52, 56, 60, 1, 5, 9, 13, 17, 21, 25, 29, 33, 37, 41, 45, 49, 53, 57, 61, 2,        \
    6, 10, 14, 18, 22, 26, 30, 34, 38, 42, 46, 50, 54, 58, 62, 3, 7, 11, 15, 19, 23, 27, 31, 35, 39, 43, 47, 51, 55, 59, 63

EV_INLINE u32x32 turned_16(u32x32 block) {
    u16x64 elements = AS(u16x64, block);
    return AS(u32x32, __builtin_shufflevector(elements, elements, TURNED_16));
}

/* The same block where k runs along the pitch: lane 4g + t holds elements P t .. of line k, place g. */
EV_INLINE void load_turned_block(const uint8_t *lines, int64_t pitch, int bytes, uint32_t *out) {
    if (bytes == 2) {
        STORE(u32x32, out, turned_16(load_block(lines, pitch)));
        return;
    }
    for (int lane = 0; lane < LANES; ++lane) {
        uint32_t value = 0;
        for (int p = 0; p < 4 / bytes; ++p) {
            const uint8_t *line = lines + (lane % 4 * (4 / bytes) + p) * pitch;
            uint32_t part = bytes == 1 ? line[lane / 4] : ((const any32 *)line)[lane / 4];
            value |= part << (8 * bytes * p % 32);
        }
        out[lane] = value;
    }
}

/* 8-row and 16-byte blocks; `turned`: k runs along the stride. `rows` blocks of 8, `depth` parts of k; which index is inner. */
EV_INLINE void load_fragment(const void *p, int64_t stride, int turned, int bytes, int rows, int depth, int rows_inner, uint32_t *out) {
    int64_t pitch = stride * bytes;
    for (int i = 0; i < rows * depth; ++i) {
        /* rows_inner: tiles of 16 rows, in which the row block runs before k */
        int row = rows_inner ? i / (2 * depth) * 2 + i % 2 : i / depth, part = rows_inner ? i / 2 % depth : i % depth;
        if (turned)
            load_turned_block((const uint8_t *)p + row * 8 * bytes + part * (16 / bytes) * pitch, pitch, bytes, out + i * LANES);
        else
            STORE(u32x32, out + i * LANES, load_block((const uint8_t *)p + row * 8 * pitch + part * 16, pitch));
    }
}

EV_INLINE void repeat_registers(uint32_t *out, int have, int want) {
    for (int i = have; i < want; ++i)
        STORE(u32x32, out + i * LANES, LOAD(u32x32, out + i % have * LANES));
}

/* a is row major, or b column major: k is contiguous. In m8n32k16 a is the small side and b the tall one. */
#define WMMA_LOAD(shape, type, bytes, depth, rows_a, rows_b, a_is_tall, b_is_tall, registers_a, registers_b)                            \
    void ev_wmma_load_a_##shape##_##type(const void *p, int64_t stride, uint32_t row_major, uint32_t *out) {                            \
        load_fragment(p, stride, !row_major, bytes, rows_a, depth, a_is_tall, out);                                                     \
        repeat_registers(out, rows_a * depth, registers_a);                                                                             \
    }                                                                                                                                   \
    void ev_wmma_load_b_##shape##_##type(const void *p, int64_t stride, uint32_t row_major, uint32_t *out) {                            \
        load_fragment(p, stride, row_major, bytes, rows_b, depth, b_is_tall, out);                                                      \
        repeat_registers(out, rows_b * depth, registers_b);                                                                             \
    }
WMMA_LOAD(m16n16k16, f16, 2, 2, 2, 2, 1, 0, 8, 8)
WMMA_LOAD(m32n8k16, f16, 2, 2, 4, 1, 1, 0, 8, 8)
WMMA_LOAD(m8n32k16, f16, 2, 2, 1, 4, 0, 1, 8, 8)
WMMA_LOAD(m16n16k16, bf16, 2, 2, 2, 2, 1, 0, 4, 4)
WMMA_LOAD(m32n8k16, bf16, 2, 2, 4, 1, 1, 0, 8, 2)
WMMA_LOAD(m8n32k16, bf16, 2, 2, 1, 4, 0, 1, 2, 8)
WMMA_LOAD(m16n16k8, tf32, 4, 2, 2, 2, 1, 0, 4, 4)
WMMA_LOAD(m16n16k16, s8, 1, 1, 2, 2, 1, 0, 2, 2)
WMMA_LOAD(m32n8k16, s8, 1, 1, 4, 1, 1, 0, 4, 1)
WMMA_LOAD(m8n32k16, s8, 1, 1, 1, 4, 0, 1, 1, 4)

/* Where pair j of accumulators lies in a shape: its block of 8 rows and its block of 8 columns. m8n32k16 is m32n8k16 turned. */
EV_INLINE void place(int tall, int j, int *row, int *column) {
    *row = tall ? j : j % 2;
    *column = tall ? 0 : j / 2;
}

/* 4-byte accumulators: 8 registers, pairs of them an 8 x 8 block. */
EV_INLINE void load_accumulator(const uint32_t *p, int64_t stride, int turned, int tall, uint32_t *out) {
    for (int j = 0; j < 4; ++j) {
        int row, column;
        place(tall, j, &row, &column);
        const uint32_t *first = p + 8 * (turned ? column * stride + row : row * stride + column);
        u32x8 lines[8];
#pragma unroll
        for (int i = 0; i < 8; ++i)
            lines[i] = *(const u32x8 *)(first + i * stride);
        u32x64 tile = __builtin_shufflevector(joined_8(lines), joined_8(lines + 4), TO_64);
        u32x32 even = __builtin_shufflevector(tile, tile, EVEN), odd = __builtin_shufflevector(tile, tile, ODD);
        u32x32 turned_even = __builtin_shufflevector(tile, tile, TURNED_EVEN), turned_odd = __builtin_shufflevector(tile, tile, TURNED_ODD);
        STORE(u32x32, out + 2 * j * LANES, turned ? turned_even : even);
        STORE(u32x32, out + (2 * j + 1) * LANES, turned ? turned_odd : odd);
    }
}

EV_INLINE void store_accumulator(uint32_t *p, int64_t stride, int turned, int tall, const uint32_t *in) {
    for (int j = 0; j < 4; ++j) {
        int row, column;
        place(tall, j, &row, &column);
        uint32_t *first = p + 8 * (turned ? column * stride + row : row * stride + column);
        u32x32 even = LOAD(u32x32, in + 2 * j * LANES), odd = LOAD(u32x32, in + (2 * j + 1) * LANES);
        u32x8 lines[8] __attribute__((aligned(64)));
        if (turned)
            STORE(u32x64, lines, __builtin_shufflevector(even, odd, TURNED_JOINED));
        else
            STORE(u32x64, lines, __builtin_shufflevector(even, odd, JOINED));
        for (int i = 0; i < 8; ++i)
            *(u32x8 *)(first + i * stride) = lines[i];
    }
}

/* f16 accumulators: 4 registers, each a pair. */
EV_INLINE void load_accumulator_f16(const uint16_t *p, int64_t stride, int turned, int tall, uint32_t *out) {
    for (int j = 0; j < 4; ++j) {
        int row, column;
        place(tall, j, &row, &column);
        const uint8_t *first = (const uint8_t *)(turned ? p + 8 * (column * stride + row) : p + 8 * (row * stride + column));
        if (turned)
            load_turned_block(first, 2 * stride, 2, out + j * LANES);
        else
            STORE(u32x32, out + j * LANES, load_block(first, 2 * stride));
    }
}

EV_INLINE void store_accumulator_f16(uint16_t *p, int64_t stride, int turned, int tall, const uint32_t *in) {
    for (int j = 0; j < 4; ++j) {
        int row, column;
        place(tall, j, &row, &column);
        uint16_t *first = p + 8 * (turned ? column * stride + row : row * stride + column);
        uint32_t block[LANES] __attribute__((aligned(64)));
        u32x32 elements = LOAD(u32x32, in + j * LANES);
        STORE(u32x32, block, turned ? turned_16(elements) : elements);
        for (int i = 0; i < 8; ++i)
            *(u8x16 *)(first + i * stride) = *(const u8x16 *)(block + 4 * i);
    }
}

/* m8n32k16 holds the transposed matrix: what is row major for the program is turned for us. */
#define WMMA_ACCUMULATOR(shape, tall, turns)                                                                                            \
    void ev_wmma_load_c_##shape##_f32(const void *p, int64_t stride, uint32_t row_major, uint32_t *out) {                               \
        load_accumulator(p, stride, turns == !!row_major, tall, out);                                                                   \
    }                                                                                                                                   \
    void ev_wmma_load_c_##shape##_f16(const void *p, int64_t stride, uint32_t row_major, uint32_t *out) {                               \
        load_accumulator_f16(p, stride, turns == !!row_major, tall, out);                                                               \
    }                                                                                                                                   \
    void ev_wmma_store_d_##shape##_f32(void *p, int64_t stride, uint32_t row_major, const uint32_t *in) {                               \
        store_accumulator(p, stride, turns == !!row_major, tall, in);                                                                   \
    }                                                                                                                                   \
    void ev_wmma_store_d_##shape##_f16(void *p, int64_t stride, uint32_t row_major, const uint32_t *in) {                               \
        store_accumulator_f16(p, stride, turns == !!row_major, tall, in);                                                               \
    }
WMMA_ACCUMULATOR(m16n16k16, 0, 0)
WMMA_ACCUMULATOR(m32n8k16, 1, 0)
WMMA_ACCUMULATOR(m8n32k16, 1, 1)

/* m16n16 is two tiles side by side, m32n8 two stacked; m8n32 is m32n8 with a and b in each other's place. What tiles share is
   shared where registers suffice for both. */
#define WMMA_MMA(shape, name, type, registers, first, second, mma, depth, kind, tiles, ...)                                             \
    void ev_wmma_mma_##shape##_##name(const uint32_t *a, const uint32_t *b, const type *c, type *d) {                                   \
        const int next = registers * LANES;                                                                                             \
        const int down = tiles == STACKED ? 2 * depth * LANES : 0, across = tiles == STACKED ? 0 : depth * LANES;                       \
        if (WIDE) {                                                                                                                     \
            mma(first, second, c, d, depth, kind, kind, tiles __VA_ARGS__);                                                             \
        } else {                                                                                                                        \
            mma(first, second, c, d, depth, kind, kind, ONE __VA_ARGS__);                                                               \
            mma(first + down, second + across, c + next, d + next, depth, kind, kind, ONE __VA_ARGS__);                                 \
        }                                                                                                                               \
    }
#define WMMA_SHAPES(name, type, registers, mma, depth, kind, ...)                                                                       \
    WMMA_MMA(m16n16k16, name, type, registers, a, b, mma, depth, kind, SIDE_BY_SIDE, __VA_ARGS__)                                       \
    WMMA_MMA(m32n8k16, name, type, registers, a, b, mma, depth, kind, STACKED, __VA_ARGS__)                                             \
    WMMA_MMA(m8n32k16, name, type, registers, b, a, mma, depth, kind, STACKED, __VA_ARGS__)
WMMA_SHAPES(f32_f16, float, 4, mma_f32, 2, F16)
WMMA_SHAPES(f16_f16, uint32_t, 2, mma_f16, 2, F16)
WMMA_SHAPES(f32_bf16, float, 4, mma_f32, 2, BF16)
WMMA_SHAPES(s32_s8, int32_t, 4, mma_s32, 1, S8, , 0)
WMMA_SHAPES(s32_u8, int32_t, 4, mma_s32, 1, U8, , 0)
WMMA_SHAPES(satfinite_s32_s8, int32_t, 4, mma_s32, 1, S8, , 1)
WMMA_SHAPES(satfinite_s32_u8, int32_t, 4, mma_s32, 1, U8, , 1)
WMMA_MMA(m16n16k8, f32_tf32, float, 4, a, b, mma_f32, 2, TF32, SIDE_BY_SIDE)

/* Row i of matrix j is at rows[8j + i], 16 bytes; lane 4g + t gets elements 2t and 2t + 1 of row g, with .trans of column g. */
void ev_ldmatrix(const uint64_t *rows, uint32_t count, uint32_t trans, uint32_t *out) {
    for (uint32_t j = 0; j < count; ++j) {
        u32x4 lines[8];
#pragma unroll
        for (int g = 0; g < 8; ++g)
            lines[g] = *(const u32x4 *)rows[8 * j + g];
        u32x32 block = block_of(lines);
        STORE(u32x32, out + j * LANES, trans ? turned_16(block) : block);
    }
}

void ev_stmatrix(const uint64_t *rows, uint32_t count, uint32_t trans, const uint32_t *in) {
    for (uint32_t j = 0; j < count; ++j) {
        uint32_t block[LANES] __attribute__((aligned(64)));
        u32x32 elements = LOAD(u32x32, in + j * LANES);
        STORE(u32x32, block, trans ? turned_16(elements) : elements);
        for (int g = 0; g < 8; ++g)
            *(u8x16 *)rows[8 * j + g] = *(const u8x16 *)(block + 4 * g);
    }
}
