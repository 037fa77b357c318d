/* Integer instructions that LLVM IR says awkwardly: prmt, bfe, bfi, bfind, dp4a, dp2a, lop3, fns (9.7.1 and 9.7.8). */
#include "lanes.h"

typedef uint32_t Selector(uint32_t c, int i);

/* Which byte (0-7, 8 added: its sign repeated) place i of the result gets. */
EV_INLINE uint32_t pick_default(uint32_t c, int i) {
    return c >> (4 * i) & 15;
}

EV_INLINE uint32_t pick_f4e(uint32_t c, int i) {
    return (c & 3) + (uint32_t)i;
}

EV_INLINE uint32_t pick_b4e(uint32_t c, int i) {
    return ((c & 3) - (uint32_t)i) & 7;
}

EV_INLINE uint32_t pick_rc8(uint32_t c, int i) {
    (void)i;
    return c & 3;
}

EV_INLINE uint32_t pick_ecl(uint32_t c, int i) {
    return (uint32_t)i > (c & 3) ? (uint32_t)i : c & 3;
}

EV_INLINE uint32_t pick_ecr(uint32_t c, int i) {
    return (uint32_t)i < (c & 3) ? (uint32_t)i : c & 3;
}

EV_INLINE uint32_t pick_rc16(uint32_t c, int i) {
    return (c & 1) * 2 + ((uint32_t)i & 1);
}

EV_INLINE uint32_t permuted(uint32_t a, uint32_t b, uint32_t c, Selector *pick) {
    uint64_t bytes = (uint64_t)b << 32 | a;
    uint32_t result = 0;
    for (int i = 0; i < 4; ++i) {
        uint32_t chosen = pick(c, i), byte = (uint32_t)(bytes >> (8 * (chosen & 7))) & 0xff;
        result |= (chosen & 8 ? (byte & 0x80 ? 0xffu : 0u) : byte) << (8 * i);
    }
    return result;
}

#define LANEWISE(name, result, signature, expression)                                                                                   \
    void name signature {                                                                                                               \
        for (int i = 0; i < LANES; ++i)                                                                                                 \
            d[i] = (result)(expression);                                                                                                \
    }
#define U32 const uint32_t *
#define THREE (U32 a, U32 b, U32 c, uint32_t *d)
LANEWISE(ev_prmt, uint32_t, THREE, permuted(a[i], b[i], c[i], pick_default))
LANEWISE(ev_prmt_f4e, uint32_t, THREE, permuted(a[i], b[i], c[i], pick_f4e))
LANEWISE(ev_prmt_b4e, uint32_t, THREE, permuted(a[i], b[i], c[i], pick_b4e))
LANEWISE(ev_prmt_rc8, uint32_t, THREE, permuted(a[i], b[i], c[i], pick_rc8))
LANEWISE(ev_prmt_ecl, uint32_t, THREE, permuted(a[i], b[i], c[i], pick_ecl))
LANEWISE(ev_prmt_ecr, uint32_t, THREE, permuted(a[i], b[i], c[i], pick_ecr))
LANEWISE(ev_prmt_rc16, uint32_t, THREE, permuted(a[i], b[i], c[i], pick_rc16))

/* Bits from position pos on, len of them; beyond the register: zeros, or for signed types copies of the field's top bit. */
EV_INLINE uint64_t field(uint64_t a, uint32_t pos, uint32_t len, uint32_t width, int is_signed) {
    pos &= 255, len &= 255;
    uint64_t value = pos < width ? a >> pos : 0, kept = len < 64 ? (1ull << len) - 1 : ~0ull;
    uint32_t top = pos + len < width + 1 ? pos + len - 1 : width - 1; /* PTX: min(pos + len - 1, msb) */
    uint64_t sign = is_signed && len && (a >> top & 1) ? ~0ull : 0;
    uint64_t there = pos < width ? (width - pos < 64 ? (1ull << (width - pos)) - 1 : ~0ull) : 0;
    return (value & kept & there) | (sign & ~(kept & there));
}

EV_INLINE uint64_t inserted(uint64_t a, uint64_t b, uint32_t pos, uint32_t len) {
    pos &= 255, len &= 255;
    uint64_t kept = len < 64 ? (1ull << len) - 1 : ~0ull, place = pos < 64 ? kept << pos : 0;
    return (b & ~place) | (pos < 64 ? a << pos & place : 0);
}

LANEWISE(ev_bfe_u32, uint32_t, THREE, field(a[i], b[i], c[i], 32, 0))
LANEWISE(ev_bfe_s32, uint32_t, THREE, field(a[i], b[i], c[i], 32, 1))
LANEWISE(ev_bfe_u64, uint64_t, (const uint64_t *a, U32 b, U32 c, uint64_t *d), field(a[i], b[i], c[i], 64, 0))
LANEWISE(ev_bfe_s64, uint64_t, (const uint64_t *a, U32 b, U32 c, uint64_t *d), field(a[i], b[i], c[i], 64, 1))
LANEWISE(ev_bfi_b32, uint32_t, (U32 a, U32 b, U32 pos, U32 len, uint32_t *d), inserted(a[i], b[i], pos[i], len[i]))
LANEWISE(ev_bfi_b64, uint64_t, (const uint64_t *a, const uint64_t *b, U32 pos, U32 len, uint64_t *d), inserted(a[i], b[i], pos[i], len[i]))

EV_INLINE uint32_t highest(uint64_t a, uint32_t shift_amount, int width) {
    if (!a)
        return 0xffffffffu;
    uint32_t at = 63 - (uint32_t)__builtin_clzll(a);
    return shift_amount ? (uint32_t)width - 1 - at : at;
}

#define BFIND(name, type, signed_type, width)                                                                                           \
    LANEWISE(ev_bfind_u##name, uint32_t, (const type *a, uint32_t *d), highest(a[i], 0, width))                                         \
    LANEWISE(ev_bfind_shiftamt_u##name, uint32_t, (const type *a, uint32_t *d), highest(a[i], 1, width))                                \
    LANEWISE(ev_bfind_s##name, uint32_t, (const type *a, uint32_t *d), highest((signed_type)a[i] < 0 ? (type)~a[i] : a[i], 0, width))    \
    LANEWISE(ev_bfind_shiftamt_s##name, uint32_t, (const type *a, uint32_t *d), highest((signed_type)a[i] < 0 ? (type)~a[i] : a[i], 1, width))
BFIND(32, uint32_t, int32_t, 32)
BFIND(64, uint64_t, int64_t, 64)

EV_INLINE int32_t part(uint32_t x, int bits, int index, int is_signed) {
    uint32_t moved = x << (32 - bits * (index + 1));
    return is_signed ? (int32_t)moved >> (32 - bits) : (int32_t)(moved >> (32 - bits));
}

EV_INLINE uint32_t dot(uint32_t a, uint32_t b, uint32_t c, int parts, int high, int signed_a, int signed_b) {
    for (int i = 0; i < parts; ++i) /* dp2a multiplies halves of a by bytes of b's lower or upper half */
        c += (uint32_t)(part(a, 32 / parts, i, signed_a) * part(b, 8, i + 2 * high, signed_b));
    return c;
}

#define DOT(types, signed_a, signed_b)                                                                                                  \
    LANEWISE(ev_dp4a_##types, uint32_t, THREE, dot(a[i], b[i], c[i], 4, 0, signed_a, signed_b))                                         \
    LANEWISE(ev_dp2a_lo_##types, uint32_t, THREE, dot(a[i], b[i], c[i], 2, 0, signed_a, signed_b))                                      \
    LANEWISE(ev_dp2a_hi_##types, uint32_t, THREE, dot(a[i], b[i], c[i], 2, 1, signed_a, signed_b))
DOT(u32_u32, 0, 0)
DOT(u32_s32, 0, 1)
DOT(s32_u32, 1, 0)
DOT(s32_s32, 1, 1)

EV_INLINE u32x32 minterm(u32x32 a, u32x32 b, u32x32 c, uint32_t table, int i) {
    u32x32 term = (i & 4 ? a : ~a) & (i & 2 ? b : ~b) & (i & 1 ? c : ~c);
    return table >> i & 1 ? term : (u32x32)0;
}

/* Bit i of the table is the result for a b c = i in binary: 0xf0 is a, 0xcc b, 0xaa c. */
void ev_lop3(U32 a, U32 b, U32 c, uint32_t table, uint32_t *d) {
    u32x32 x = LOAD(u32x32, a), y = LOAD(u32x32, b), z = LOAD(u32x32, c), all = 0;
    for (int i = 0; i < 8; ++i)
        all |= minterm(x, y, z, table, i);
    STORE(u32x32, d, all);
}

/* Find the n-th set bit from base on, upwards or downwards; PTX's pseudo-code. */
EV_INLINE uint32_t nth_set(uint32_t a, uint32_t base, int32_t offset) {
    if (base > 31)
        return 0xffffffffu;
    if (offset == 0)
        return a >> base & 1 ? base : 0xffffffffu;
    int step = offset > 0 ? 1 : -1;
    int64_t count = offset > 0 ? (int64_t)offset - 1 : -(int64_t)offset - 1;
    for (int position = (int)base; position >= 0 && position < 32; position += step)
        if (a >> position & 1 && count-- == 0)
            return (uint32_t)position;
    return 0xffffffffu;
}
LANEWISE(ev_fns, uint32_t, (U32 a, U32 b, const int32_t *c, uint32_t *d), nth_set(a[i], b[i], c[i]))
