/* Exchange between lanes: shfl (9.7.9.6), match (9.7.13.8), redux (9.7.13.9). */
#include "lanes.h"

typedef enum { UP, DOWN, BFLY, IDX } Mode;

/* PTX's pseudo-code, with its names. An inactive lane's value is undefined there; here it is whatever its register holds. */
EV_INLINE uint32_t shuffle(const uint32_t *x, const uint32_t *b, const uint32_t *c, uint32_t mask, uint32_t *out, Mode mode) {
    uint32_t result[LANES], inside = 0;
    for (int lane = 0; lane < LANES; ++lane) {
        int bval = b[lane] & 31, cval = c[lane] & 31, segment = c[lane] >> 8 & 31, j;
        int max_lane = (lane & segment) | (cval & ~segment), min_lane = lane & segment;
        j = mode == UP ? lane - bval : mode == DOWN ? lane + bval : mode == BFLY ? lane ^ bval : min_lane | (bval & ~segment);
        int p = mode == UP ? j >= max_lane : j <= max_lane;
        j = p ? j : lane;
        inside |= (uint32_t)p << lane;
        result[lane] = x[j];
    }
    EACH_LANE(lane, mask) out[lane] = result[lane];
    return inside & mask;
}

#define SHUFFLE(name, mode)                                                                                                             \
    void ev_shfl_##name##_b32(const uint32_t *x, const uint32_t *lane, const uint32_t *c, uint32_t mask, uint32_t *out, uint32_t *inside) { \
        *inside = shuffle(x, lane, c, mask, out, mode);                                                                                 \
    }
SHUFFLE(up, UP)
SHUFFLE(down, DOWN)
SHUFFLE(bfly, BFLY)
SHUFFLE(idx, IDX)

#define MATCH(name, type)                                                                                                               \
    void ev_match_any_##name(const type *x, uint32_t mask, uint32_t *out) {                                                             \
        uint32_t same[LANES] = {0};                                                                                                     \
        EACH_LANE(lane, mask) for (uint32_t other = 0; other < LANES; ++other) same[lane] |= (uint32_t)(x[other] == x[lane]) << other;  \
        EACH_LANE(lane, mask) out[lane] = same[lane] & mask;                                                                            \
    }                                                                                                                                   \
    uint32_t ev_match_all_##name(const type *x, uint32_t mask) {                                                                        \
        EACH_LANE(lane, mask) if (x[lane] != x[__builtin_ctz(mask)]) return 0;                                                          \
        return mask;                                                                                                                    \
    }
MATCH(b32, uint32_t)
MATCH(b64, uint64_t)

#define REDUCE(name, type, start, step)                                                                                                 \
    type ev_redux_##name(const type *x, uint32_t mask) {                                                                                \
        type all = start;                                                                                                               \
        EACH_LANE(lane, mask) {                                                                                                         \
            type one = x[lane];                                                                                                         \
            all = step;                                                                                                                 \
        }                                                                                                                               \
        return all;                                                                                                                     \
    }
REDUCE(add_u32, uint32_t, 0, all + one)
REDUCE(and_b32, uint32_t, 0xffffffffu, all & one)
REDUCE(or_b32, uint32_t, 0, all | one)
REDUCE(xor_b32, uint32_t, 0, all ^ one)
REDUCE(min_u32, uint32_t, 0xffffffffu, one < all ? one : all)
REDUCE(max_u32, uint32_t, 0, one > all ? one : all)
REDUCE(min_s32, int32_t, 0x7fffffff, one < all ? one : all)
REDUCE(max_s32, int32_t, -0x7fffffff - 1, one > all ? one : all)
/* redux.f32: NaNs are ignored; the initial value is NaN, which remains if every lane has NaN */
REDUCE(min_f32, float, __builtin_nanf(""), all != all || one < all || (one == all && __builtin_signbit(one)) ? one : all)
REDUCE(max_f32, float, __builtin_nanf(""), all != all || one > all || (one == all && !__builtin_signbit(one)) ? one : all)
