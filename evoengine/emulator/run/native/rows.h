/* Rows of memory as vectors, which need not be aligned. */
#ifndef EV_ROWS_H
#define EV_ROWS_H
#include "vector.h"

typedef uint32_t u32x4 __attribute__((ext_vector_type(4), aligned(1)));
typedef uint32_t u32x8 __attribute__((ext_vector_type(8), aligned(1)));
typedef uint32_t u32x16 __attribute__((ext_vector_type(16), aligned(1)));

/* Two vectors of half as many elements, one behind the other. What rows of memory make is joined in registers: narrow stores
   that a wide load then reads make a CPU wait for the stores. */
#define TO_8 0, 1, 2, 3, 4, 5, 6, 7
#define TO_16 TO_8, 8, 9, 10, 11, 12, 13, 14, 15
#define TO_32 TO_16, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31
#define TO_64                                                                                                                           \
    TO_32, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44, 45, 46, 47, 48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61, 62, 63

EV_INLINE u32x16 joined_4(const u32x4 *rows) {
    u32x8 low = __builtin_shufflevector(rows[0], rows[1], TO_8), high = __builtin_shufflevector(rows[2], rows[3], TO_8);
    return __builtin_shufflevector(low, high, TO_16);
}

#endif
