/* One memory access of a warp, and runs of lanes with contiguous or equal addresses.
 *
 * Most instructions access one contiguous run of bytes, lane after lane, or one address with all lanes. Such a run is checked
 * once for all of its lanes. */
#ifndef EV_ACCESS_H
#define EV_ACCESS_H

#include "checker.h"

#define INLINE static inline __attribute__((always_inline))

/* aligned(8): as the arrays that they are loaded from; clang would assume them to be aligned to their size */
typedef ev_u64 u64x32 __attribute__((ext_vector_type(32), aligned(8)));
typedef ev_u32 u32x32 __attribute__((ext_vector_type(32), aligned(4)));
typedef _Bool bits_x32 __attribute__((ext_vector_type(32)));

static const u32x32 LANE = {0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15,
                            16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31};

typedef struct {
    ev_u32 warp, mask, kind, bytes, site;
    ev_u32 is_data, is_poll;    /* EV_DATA or 0, EV_POLL or 0 */
    ev_u32 follows;        /* lanes whose bytes follow those of the previous lane */
    ev_u32 repeats;        /* lanes with the same address as the previous lane */
    const ev_u64 *address; /* [32]; undefined outside of mask */
} Access;

/* Neighbouring lanes of an access: their bytes are contiguous in lane order, or all the same. */
typedef struct {
    ev_u32 lane, count; /* first lane, number of lanes */
    ev_u32 same;
} Run;

INLINE ev_u32 lowest(ev_u32 mask) { return (ev_u32)__builtin_ctz(mask); }
INLINE ev_u32 all_but_lowest(ev_u32 mask) { return mask & (mask - 1); }
INLINE ev_u32 lanes_of(Run run) { return (ev_u32)((1ull << run.count) - 1) << run.lane; }

INLINE u64x32 load_lanes(const ev_u64 *address) { return *(const u64x32 *)address; }
INLINE void store_lanes(ev_u64 *array, u64x32 x) { *(u64x32 *)array = x; }

/* The value of the previous lane in each lane; lane 0 is undefined. */
INLINE u64x32 lanes_before(u64x32 x) {
    return __builtin_shufflevector(x, x, 31, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25,
                                   26, 27, 28, 29, 30);
}

/* The lanes for which a comparison holds. A macro, because the compiler chooses the integer type of the vector. */
#define LANES_WHERE(comparison) __builtin_bit_cast(ev_u32, __builtin_convertvector(comparison, bits_x32))

/* value in the lanes of mask, 0 in the others */
INLINE u32x32 only(ev_u32 mask, u32x32 value) { return value & -((u32x32)mask >> LANE & 1u); }

/* The bitwise or of the low 32 bits of these lanes' values. */
INLINE ev_u32 any_bits(ev_u32 mask, u64x32 value) { return __builtin_reduce_or(only(mask, __builtin_convertvector(value, u32x32))); }

INLINE ev_u32 is_aligned(ev_u64 address, ev_u32 bytes) { return !(address & ((bytes & -bytes) - 1)); }
INLINE ev_u32 is_load(const Access *a) { return a->kind == EV_READ || a->kind == EV_STRONG_READ; }
INLINE ev_u32 is_one_run(const Access *a) { return a->follows == all_but_lowest(a->mask); }
INLINE ev_u32 is_one_place(const Access *a) { return a->repeats == all_but_lowest(a->mask); }

INLINE Access make_access(ev_u32 warp, ev_u32 mask, ev_u32 kind, ev_u32 bytes, const ev_u64 *address, ev_u32 site) {
    u64x32 here = load_lanes(address), before = lanes_before(here);
    ev_u32 pairs = mask & mask << 1; /* active lanes whose previous lane is active */
    if (bytes & (bytes - 1))
        pairs = 0; /* runs need sizes that are powers of two, as all but parts of copies are */
    return (Access){.warp = warp, .mask = mask, .kind = kind & EV_KINDS, .is_data = kind & EV_DATA,
                    .is_poll = kind & EV_POLL, .bytes = bytes, .site = site, .address = address,
                    .follows = pairs & LANES_WHERE(here == before + bytes), .repeats = pairs & LANES_WHERE(here == before)};
}

/* The access restricted to some of its lanes. */
INLINE Access with_lanes(const Access *a, ev_u32 mask) {
    Access part = *a;
    part.mask = mask;
    part.follows &= mask & mask << 1;
    part.repeats &= mask & mask << 1;
    return part;
}

/* The longest run that starts at this lane. */
INLINE Run run_from(const Access *a, ev_u32 lane) {
    ev_u32 same = !((ev_u64)a->follows >> (lane + 1) & 1);
    ev_u64 joined = (ev_u64)(same ? a->repeats : a->follows) >> (lane + 1);
    return (Run){.lane = lane, .count = 1 + (ev_u32)__builtin_ctzll(~joined), .same = same};
}

/* The number of bytes that a run accesses. */
INLINE ev_u32 run_bytes(const Access *a, Run run) { return run.same ? a->bytes : a->bytes * run.count; }

/* The lanes after a run. */
INLINE ev_u32 lanes_behind(ev_u32 mask, Run run) { return (ev_u32)((ev_u64)mask & ~0ull << (run.lane + run.count)); }

#endif
