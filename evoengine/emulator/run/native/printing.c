/* What printf is after a launch has printed all that it may: a flood then costs what its loops cost. */
#include "runtime.h"

void ev_print_nothing(Block *block, u32 mask, const u64 *format, u64 *arguments, u32 kind) {
    (void)block, (void)format, (void)kind;
    for (; mask; mask &= mask - 1) arguments[__builtin_ctz(mask)] = ~0ull;
}
