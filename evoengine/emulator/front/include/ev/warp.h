// Shuffles, votes, matches and reductions of a warp.
#pragma once
// The last operand: bits 0-4 the highest lane, bits 8-12 the segment mask (PTX ISA, shfl.sync).
#define EV_SHUFFLE_WORD(NAME, MODE, LIMIT, B)                                                              \
    EV int NAME(unsigned int mask, int x, B lane, int width = 32) {                                        \
        return __nvvm_shfl_sync_##MODE##_i32(mask, x, lane, ((32 - width) << 8) | LIMIT);                  \
    }                                                                                                      \
    EV float NAME(unsigned int mask, float x, B lane, int width = 32) {                                    \
        return __nvvm_shfl_sync_##MODE##_f32(mask, x, lane, ((32 - width) << 8) | LIMIT);                  \
    }                                                                                                      \
    EV unsigned int NAME(unsigned int mask, unsigned int x, B lane, int width = 32) {                      \
        return NAME(mask, (int)x, lane, width);                                                            \
    }                                                                                                      \
    EV long long NAME(unsigned int mask, long long x, B lane, int width = 32) {                            \
        const unsigned int lo = NAME(mask, (unsigned int)x, lane, width);                                  \
        const unsigned int hi = NAME(mask, (unsigned int)(x >> 32), lane, width);                          \
        return (long long)((unsigned long long)hi << 32 | lo);                                             \
    }                                                                                                      \
    EV unsigned long long NAME(unsigned int mask, unsigned long long x, B lane, int width = 32) {          \
        return NAME(mask, (long long)x, lane, width);                                                      \
    }                                                                                                      \
    EV long NAME(unsigned int mask, long x, B lane, int width = 32) { return NAME(mask, (long long)x, lane, width); } \
    EV unsigned long NAME(unsigned int mask, unsigned long x, B lane, int width = 32) {                    \
        return NAME(mask, (long long)x, lane, width);                                                      \
    }                                                                                                      \
    EV double NAME(unsigned int mask, double x, B lane, int width = 32) {                                  \
        return __longlong_as_double(NAME(mask, __double_as_longlong(x), lane, width));                     \
    }
EV_SHUFFLE_WORD(__shfl_sync, idx, 0x1f, int)
EV_SHUFFLE_WORD(__shfl_up_sync, up, 0, unsigned int)
EV_SHUFFLE_WORD(__shfl_down_sync, down, 0x1f, unsigned int)
EV_SHUFFLE_WORD(__shfl_xor_sync, bfly, 0x1f, int)
#undef EV_SHUFFLE_WORD

EV int __all_sync(unsigned int mask, int predicate) { return __nvvm_vote_all_sync(mask, predicate); }
EV int __any_sync(unsigned int mask, int predicate) { return __nvvm_vote_any_sync(mask, predicate); }
EV int __uni_sync(unsigned int mask, int predicate) { return __nvvm_vote_uni_sync(mask, predicate); }
EV unsigned int __ballot_sync(unsigned int mask, int predicate) { return __nvvm_vote_ballot_sync(mask, predicate); }
EV unsigned int __activemask() {
    unsigned int mask;
    asm volatile("activemask.b32 %0;" : "=r"(mask));
    return mask;
}

#define EV_MATCH(T, WORD, BITS)                                                                            \
    EV unsigned int __match_any_sync(unsigned int mask, T x) {                                             \
        return __nvvm_match_any_sync_##BITS(mask, __builtin_bit_cast(WORD, x));                            \
    }                                                                                                      \
    EV unsigned int __match_all_sync(unsigned int mask, T x, int* predicate) {                             \
        return __nvvm_match_all_sync_##BITS##p(mask, __builtin_bit_cast(WORD, x), predicate);              \
    }
EV_MATCH(int, unsigned int, i32)
EV_MATCH(unsigned int, unsigned int, i32)
EV_MATCH(float, unsigned int, i32)
EV_MATCH(long, unsigned long long, i64)
EV_MATCH(unsigned long, unsigned long long, i64)
EV_MATCH(long long, unsigned long long, i64)
EV_MATCH(unsigned long long, unsigned long long, i64)
EV_MATCH(double, unsigned long long, i64)
#undef EV_MATCH

#if __CUDA_ARCH__ >= 800
#define EV_REDUCE(OP, T, BUILTIN) \
    EV T __reduce_##OP##_sync(unsigned int mask, T x) { return __nvvm_redux_sync_##BUILTIN(x, mask); }
EV_REDUCE(add, int, add)
EV_REDUCE(add, unsigned int, add)
EV_REDUCE(min, int, min)
EV_REDUCE(min, unsigned int, umin)
EV_REDUCE(max, int, max)
EV_REDUCE(max, unsigned int, umax)
EV_REDUCE(and, unsigned int, and)
EV_REDUCE(or, unsigned int, or)
EV_REDUCE(xor, unsigned int, xor)
#undef EV_REDUCE
#endif
