/* atom and red, 9.7.12.5: one lane after another, ascending, each by an atomic operation of the host, since several host
   threads run blocks at once. Sequentially consistent: stronger than any order that PTX asks for.

   Addresses are host addresses, aligned to the type. old may be the same array as value. */
#include "lanes.h"
#include "narrow.h"

#define BY_HOST(operator, name, type, builtin)                                                                                          \
    void ev_atomic_##operator##_##name(const uint64_t *address, const type *value, uint32_t mask, type *old) {                          \
        EACH_LANE(lane, mask) old[lane] = builtin((type *)address[lane], value[lane], __ATOMIC_SEQ_CST);                                \
    }
#define INTEGER(name, type)                                                                                                             \
    BY_HOST(add, name, type, __atomic_fetch_add)                                                                                        \
    BY_HOST(min, name, type, __atomic_fetch_min)                                                                                        \
    BY_HOST(max, name, type, __atomic_fetch_max)                                                                                        \
    BY_HOST(and, name, type, __atomic_fetch_and)                                                                                        \
    BY_HOST(or, name, type, __atomic_fetch_or)                                                                                          \
    BY_HOST(xor, name, type, __atomic_fetch_xor)                                                                                        \
    BY_HOST(exch, name, type, __atomic_exchange_n)
INTEGER(u32, uint32_t)
INTEGER(s32, int32_t)
INTEGER(u64, uint64_t)
INTEGER(s64, int64_t)
BY_HOST(exch, b16, uint16_t, __atomic_exchange_n)

#define COMPARE_AND_SWAP(name, type)                                                                                                    \
    void ev_atomic_cas_##name(const uint64_t *address, const type *expected, const type *value, uint32_t mask, type *old) {             \
        EACH_LANE(lane, mask) {                                                                                                         \
            type seen = expected[lane];                                                                                                 \
            __atomic_compare_exchange_n((type *)address[lane], &seen, value[lane], 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);              \
            old[lane] = seen;                                                                                                           \
        }                                                                                                                               \
    }
COMPARE_AND_SWAP(b16, uint16_t)
COMPARE_AND_SWAP(b32, uint32_t)
COMPARE_AND_SWAP(b64, uint64_t)

/* Operations without a host instruction: a compare-and-swap loop. */
#define BY_LOOP(operator, name, type, result)                                                                                           \
    void ev_atomic_##operator##_##name(const uint64_t *address, const type *value, uint32_t mask, type *old) {                          \
        EACH_LANE(lane, mask) {                                                                                                         \
            type *place = (type *)address[lane], given = value[lane], seen = __atomic_load_n(place, __ATOMIC_RELAXED);                  \
            while (!__atomic_compare_exchange_n(place, &seen, (type)(result), 1, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))                   \
                continue;                                                                                                               \
            old[lane] = seen;                                                                                                           \
        }                                                                                                                               \
    }

static uint32_t sum_f32(uint32_t x, uint32_t y) {
    return AS(uint32_t, AS(float, x) + AS(float, y));
}

static uint64_t sum_f64(uint64_t x, uint64_t y) {
    return AS(uint64_t, AS(double, x) + AS(double, y));
}

static uint16_t sum_f16(uint16_t x, uint16_t y) {
    return narrow_f16(widen_f16((u16x32)x) + widen_f16((u16x32)y))[0];
}

static uint16_t sum_bf16(uint16_t x, uint16_t y) {
    return narrow_bf16(widen_bf16((u16x32)x) + widen_bf16((u16x32)y))[0];
}

static uint32_t sum_f16x2(uint32_t x, uint32_t y) {
    return (uint32_t)sum_f16((uint16_t)(x >> 16), (uint16_t)(y >> 16)) << 16 | sum_f16((uint16_t)x, (uint16_t)y);
}

static uint32_t sum_bf16x2(uint32_t x, uint32_t y) {
    return (uint32_t)sum_bf16((uint16_t)(x >> 16), (uint16_t)(y >> 16)) << 16 | sum_bf16((uint16_t)x, (uint16_t)y);
}

BY_LOOP(inc, u32, uint32_t, seen >= given ? 0 : seen + 1)
BY_LOOP(dec, u32, uint32_t, seen == 0 || seen > given ? given : seen - 1)
BY_LOOP(add, f32, uint32_t, sum_f32(seen, given))
BY_LOOP(add, f64, uint64_t, sum_f64(seen, given))
BY_LOOP(add, f16, uint16_t, sum_f16(seen, given))
BY_LOOP(add, bf16, uint16_t, sum_bf16(seen, given))
BY_LOOP(add, f16x2, uint32_t, sum_f16x2(seen, given))
BY_LOOP(add, bf16x2, uint32_t, sum_bf16x2(seen, given))
