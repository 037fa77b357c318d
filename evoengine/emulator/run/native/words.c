/* Vector loads and stores: two or four words a lane, each lane at an address of its own, which need not be aligned.
   A lane's words lie in a row of memory, a register holds one word of every lane: so this transposes. */
#include "lanes.h"
#include "rows.h"

typedef uint64_t u64x8 __attribute__((ext_vector_type(8)));
typedef uint64_t any_u64 __attribute__((aligned(1)));

enum { HALF = LANES / 2 };

#define FIRST_HALVES 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23
#define LAST_HALVES 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31
#define SHUFFLE __builtin_shufflevector

static const uint32_t ZEROS[4];

EV_INLINE const void *of_lane(const uint64_t *address, uint32_t mask, int lane) {
    return mask >> lane & 1 ? (const void *)address[lane] : ZEROS;
}

/* The words of four lanes, lane by lane. */
EV_INLINE u32x16 four_rows(const uint64_t *address, uint32_t mask, int lane) {
    u32x4 rows[4];
    for (int i = 0; i < 4; ++i)
        rows[i] = *(const u32x4 *)of_lane(address, mask, lane + i);
    return joined_4(rows);
}

void ev_load_words_4(const uint64_t *address, uint32_t mask, uint32_t *out) {
    for (int first = 0; first < LANES; first += HALF) {
        u32x16 rows[4], low[2], high[2]; /* low: words 0 and 1 of eight lanes, high: 2 and 3 */
        for (int i = 0; i < 4; ++i)
            rows[i] = four_rows(address, mask, first + 4 * i);
        for (int i = 0; i < 2; ++i) {
            low[i] = SHUFFLE(rows[2 * i], rows[2 * i + 1], 0, 4, 8, 12, 16, 20, 24, 28, 1, 5, 9, 13, 17, 21, 25, 29);
            high[i] = SHUFFLE(rows[2 * i], rows[2 * i + 1], 2, 6, 10, 14, 18, 22, 26, 30, 3, 7, 11, 15, 19, 23, 27, 31);
        }
        STORE(u32x16, out + first, SHUFFLE(low[0], low[1], FIRST_HALVES));
        STORE(u32x16, out + LANES + first, SHUFFLE(low[0], low[1], LAST_HALVES));
        STORE(u32x16, out + 2 * LANES + first, SHUFFLE(high[0], high[1], FIRST_HALVES));
        STORE(u32x16, out + 3 * LANES + first, SHUFFLE(high[0], high[1], LAST_HALVES));
    }
}

EV_INLINE void store_row(const uint64_t *address, uint32_t mask, int lane, u32x4 row) {
    if (mask >> lane & 1)
        *(u32x4 *)address[lane] = row;
}

EV_INLINE void store_four_rows(const uint64_t *address, uint32_t mask, int lane, u32x16 rows) {
    store_row(address, mask, lane, SHUFFLE(rows, rows, 0, 1, 2, 3));
    store_row(address, mask, lane + 1, SHUFFLE(rows, rows, 4, 5, 6, 7));
    store_row(address, mask, lane + 2, SHUFFLE(rows, rows, 8, 9, 10, 11));
    store_row(address, mask, lane + 3, SHUFFLE(rows, rows, 12, 13, 14, 15));
}

void ev_store_words_4(const uint64_t *address, uint32_t mask, const uint32_t *in) {
    for (int first = 0; first < LANES; first += HALF) {
        u32x16 words[4];
        for (int i = 0; i < 4; ++i)
            words[i] = LOAD(u32x16, in + i * LANES + first);
        for (int late = 0; late < 2; ++late) {
            u32x16 low = late ? SHUFFLE(words[0], words[1], LAST_HALVES) : SHUFFLE(words[0], words[1], FIRST_HALVES);
            u32x16 high = late ? SHUFFLE(words[2], words[3], LAST_HALVES) : SHUFFLE(words[2], words[3], FIRST_HALVES);
            int lane = first + 8 * late;
            store_four_rows(address, mask, lane, SHUFFLE(low, high, 0, 8, 16, 24, 1, 9, 17, 25, 2, 10, 18, 26, 3, 11, 19, 27));
            store_four_rows(address, mask, lane + 4, SHUFFLE(low, high, 4, 12, 20, 28, 5, 13, 21, 29, 6, 14, 22, 30, 7, 15, 23, 31));
        }
    }
}

EV_INLINE u32x16 eight_pairs(const uint64_t *address, uint32_t mask, int lane) {
    u64x8 pairs;
    for (int i = 0; i < 8; ++i)
        pairs[i] = *(const any_u64 *)of_lane(address, mask, lane + i);
    return AS(u32x16, pairs);
}

void ev_load_words_2(const uint64_t *address, uint32_t mask, uint32_t *out) {
    for (int first = 0; first < LANES; first += HALF) {
        u32x16 a = eight_pairs(address, mask, first), b = eight_pairs(address, mask, first + 8);
        STORE(u32x16, out + first, SHUFFLE(a, b, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30));
        STORE(u32x16, out + LANES + first, SHUFFLE(a, b, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31));
    }
}

void ev_store_words_2(const uint64_t *address, uint32_t mask, const uint32_t *in) {
    u64x32 pairs = CONVERT(LOAD(u32x32, in), u64x32) | CONVERT(LOAD(u32x32, in + LANES), u64x32) << 32;
    ev_scatter_64(address, mask, (const uint64_t *)&pairs);
}
