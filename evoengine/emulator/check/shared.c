/* Shared memory: records the writer and the readers of each granule. */
#include "shared.h"

/* The lanes that are out of bounds or misaligned; reports them. */
static OUTLINE ev_u32 stray_lanes(Checker *c, const Access *a) {
    ev_u32 found = 0;
    ev_u64 size = c->shared_bytes;
    for (ev_u32 lanes = a->mask; lanes; lanes &= lanes - 1) {
        ev_u32 lane = lowest(lanes);
        ev_u64 address = a->address[lane];
        ev_u32 stray = address > size || address + a->bytes > size;
        if (!stray && is_aligned(address, a->bytes))
            continue;
        ev_i64 place = address >> 32 ? (ev_i64)address : (ev_i32)address, distance = place < 0 ? place : place + a->bytes - (ev_i64)size;
        report(c, (Finding){.kind = stray ? EV_OUT_OF_BOUNDS : EV_MISALIGNED, .space = EV_SHARED, .buffer = -1, .bytes = a->bytes,
                            .offset = place, .distance = stray ? distance : 0, .thread = (ev_i32)(a->warp * 32 + lane),
                            .site = (ev_i32)a->site, .other_thread = -1, .other_site = -1, .other_block = -1, .times = 1});
        found |= 1u << lane;
    }
    return found;
}

ev_u32 shared_bounds(Checker *c, const Access *a) {
    u64x32 addresses = load_lanes(a->address);
    u32x32 offsets = only(a->mask, __builtin_convertvector(addresses, u32x32));
    ev_u64 end = (ev_u64)__builtin_reduce_max(offsets) + a->bytes;
    /* an index that runs away in 64 bits passes offsets whose low 32 bits look right */
    ev_u32 beyond = any_bits(a->mask, addresses >> 32);
    if (__builtin_expect(end <= c->shared_bytes && !beyond && is_aligned(__builtin_reduce_or(offsets), a->bytes), 1))
        return a->mask;
    return a->mask & ~stray_lanes(c, a);
}

/* The shadow arrays of an access and the values that it stores there; times as in records. */
typedef struct {
    ev_u64 now, full_sync, horizon;
    ev_u64 *reads, *written;
    ev_u32 *last_read, *sites, site;
    ev_u8 *state;
    ev_u64 record;                                 /* of what lane 0 writes */
    ev_u8 fresh_state, state_bits, state_expected; /* state after a write; bits of the state before it, and their expected value */
} Marks;

INLINE Marks open_marks(const Checker *c, const Access *a) {
    const SharedShadow *s = &c->shared;
    const ev_u64 row = (ev_u64)a->warp * s->granules;
    return (Marks){.now = (ev_u64)c->now << TIME_SHIFT, .full_sync = (ev_u64)c->full_sync[a->warp] << TIME_SHIFT,
                   .horizon = (ev_u64)c->horizon[a->warp] << TIME_SHIFT, .reads = s->reads + row, .written = s->written,
                   .last_read = s->last_read, .sites = s->read_sites + row, .site = a->site, .state = s->state,
                   .record = record_of(c->now, a->warp * 32, a->site)};
}

#define WIDTH 8
#include "blocks.h"
#define WIDTH 4
#include "blocks.h"
#define WIDTH 2
#include "blocks.h"
#define WIDTH 1
#include "blocks.h"

/* Calls a function of blocks.h for all granules of a span; the bitwise or of its results. */
#define IN_BLOCKS(function, marks, span) \
    ({ \
        ev_u32 at = 0, given = 0; \
        for (; at + 8 <= (span)->count; at += 8) \
            given |= function##_8(marks, span, at); \
        if ((span)->count & 4) { \
            given |= function##_4(marks, span, at); \
            at += 4; \
        } \
        if ((span)->count & 2) { \
            given |= function##_2(marks, span, at); \
            at += 2; \
        } \
        if ((span)->count & 1) \
            given |= function##_1(marks, span, at); \
        given; \
    })

/* Calls `function` with the number of granules of a lane as a constant in the usual cases. */
#define WITH_COUNT(function, count, ...) \
    switch (count) { \
    case 1: function(__VA_ARGS__, 1); break; \
    case 2: function(__VA_ARGS__, 2); break; \
    case 4: function(__VA_ARGS__, 4); break; \
    case 8: function(__VA_ARGS__, 8); break; \
    default: function(__VA_ARGS__, count); \
    }

/* Records a lane's read after a part of its warp synchronised: other readers are kept unless they are ordered before it. */
static OUTLINE void merge_reads(Checker *c, ev_u32 warp, ev_u32 lane, ev_u32 first, ev_u32 count) {
    ev_u64 *reads = c->shared.reads + (ev_u64)warp * c->shared.granules;
    for (ev_u32 g = first; g < first + count; g++) {
        ev_u64 old = reads[g];
        ev_u32 kept = 0;
        for (ev_u32 lanes = (ev_u32)old & ~(1u << lane); lanes; lanes &= lanes - 1)
            if (!is_ordered(c, warp, lane, warp * 32 + lowest(lanes), time_of(old)))
                kept |= 1u << lowest(lanes);
        /* The older time is kept: this may miss a race between partly synchronised lanes, but never reports a false one. */
        reads[g] = (ev_u64)(kept ? time_of(old) : c->now) << TIME_SHIFT | kept | 1u << lane;
    }
}

/* Records reads after a part of the warp synchronised. */
static OUTLINE void read_in_part(Checker *c, const Access *a) {
    const SharedShadow *s = &c->shared;
    const ev_u32 shift = s->shift, count = a->bytes >> shift;
    ev_u32 *sites = s->read_sites + (ev_u64)a->warp * s->granules;
    for (ev_u32 lanes = a->mask; lanes; lanes &= lanes - 1) {
        Span span = lane_span(a, lowest(lanes), shift, count);
        examine_reads(c, a, &span);
        merge_reads(c, a->warp, span.lane, span.first, count);
        for (ev_u32 g = span.first; g < span.first + count; g++) {
            s->last_read[g] = c->now;
            sites[g] = a->site;
        }
    }
}

INLINE void read_span(Checker *c, const Access *a, const Marks *m, Span span) {
    if (__builtin_expect(IN_BLOCKS(read, m, &span), 0))
        examine_reads(c, a, &span);
}

INLINE void read_each(Checker *c, const Access *a, const Marks *m, ev_u32 shift, ev_u32 count) {
    for (ev_u32 lanes = a->mask; lanes; lanes &= lanes - 1)
        read_span(c, a, m, lane_span(a, lowest(lanes), shift, count));
}

static void read_lanes(Checker *c, const Access *a) {
    const Marks marks = open_marks(c, a);
    const ev_u32 shift = c->shared.shift;
    if (is_one_run(a) || is_one_place(a)) {
        read_span(c, a, &marks, whole_span(a, shift));
        return;
    }
    WITH_COUNT(read_each, a->bytes >> shift, c, a, &marks, shift)
}

INLINE void doubt_span(Checker *c, const Access *a, const Marks *m, Span span) {
    if (__builtin_expect(IN_BLOCKS(doubt, m, &span), 0))
        examine_writes(c, a, &span);
}

/* All lanes are examined before any is recorded: lanes of one instruction do not race with one another. */
INLINE void write_each(Checker *c, const Access *a, const Marks *m, ev_u32 shift, ev_u32 count) {
    for (ev_u32 lanes = a->mask; lanes; lanes &= lanes - 1)
        doubt_span(c, a, m, lane_span(a, lowest(lanes), shift, count));
    for (ev_u32 lanes = a->mask; lanes; lanes &= lanes - 1) {
        Span span = lane_span(a, lowest(lanes), shift, count);
        IN_BLOCKS(write, m, &span);
    }
}

static void write_lanes(Checker *c, const Access *a, ev_u8 fresh_state) {
    Marks marks = open_marks(c, a);
    const ev_u32 shift = c->shared.shift, atomic = a->kind == EV_ATOMIC;
    marks.fresh_state = fresh_state;
    marks.state_bits = IN_FLIGHT | (atomic ? INITIALISED : 0);
    marks.state_expected = atomic ? INITIALISED : 0;
    if (is_one_run(a) || is_one_place(a)) {
        Span span = whole_span(a, shift);
        doubt_span(c, a, &marks, span);
        if (span.same)
            span.lane = 31 - (ev_u32)__builtin_clz(a->mask); /* the last one wins */
        IN_BLOCKS(write, &marks, &span);
        return;
    }
    WITH_COUNT(write_each, a->bytes >> shift, c, a, &marks, shift)
}

/* Whether each lane's bytes come after those of the previous lane. */
static ev_u32 is_rising(const Access *a) {
    const u64x32 here = load_lanes(a->address);
    const ev_u32 later = all_but_lowest(a->mask);
    return (a->mask << 1 & later & LANES_WHERE(here >= lanes_before(here) + a->bytes)) == later;
}

/* Whether a quick check shows that all lanes have distinct addresses. */
static ev_u32 are_distinct(const Access *a) {
    ev_u8 slots[256]; /* the last lane for each value of the address's low bits */
    const ev_u32 bits = lowest(a->bytes);
    ev_u32 shared = 0;
    for (ev_u32 lanes = a->mask; lanes; lanes &= lanes - 1)
        slots[offset_of(a, lowest(lanes)) >> bits & 255] = (ev_u8)lowest(lanes);
    for (ev_u32 lanes = a->mask; lanes; lanes &= lanes - 1)
        shared |= slots[offset_of(a, lowest(lanes)) >> bits & 255] ^ lowest(lanes);
    return !shared;
}

/* Counts lanes that are overwritten when lanes of one instruction write the same bytes; which lane wins is undefined. */
static OUTLINE void find_same_address(Checker *c, const Access *a) {
    ev_u32 slots[64], lost = 0;
    memset(slots, 0xff, sizeof slots);
    for (ev_u32 lanes = a->mask; lanes; lanes &= lanes - 1) {
        ev_u32 lane = lowest(lanes), at = (offset_of(a, lane) / a->bytes * 0x9E3779B1u) >> 26;
        while (slots[at] != ~0u && a->address[slots[at]] != a->address[lane])
            at = (at + 1) & 63;
        if (slots[at] != ~0u && !lost++)
            report(c, (Finding){.kind = EV_SAME_ADDRESS_WRITE, .space = EV_SHARED, .buffer = -1, .bytes = a->bytes,
                                .offset = (ev_i64)a->address[lane], .thread = (ev_i32)(a->warp * 32 + lane), .site = (ev_i32)a->site,
                                .other_thread = (ev_i32)(a->warp * 32 + slots[at]), .other_site = (ev_i32)a->site,
                                .other_block = (ev_i64)c->block, .times = 1});
        slots[at] = lane;
    }
    c->counts.same_address_writes += lost;
}

INLINE void settle_shift(Checker *c, const Access *a) {
    ev_u32 offsets = is_one_run(a) ? offset_of(a, lowest(a->mask)) : any_bits(a->mask, load_lanes(a->address));
    ev_u32 shift = lowest(offsets | a->bytes | 4);
    if (__builtin_expect(shift < c->shared.shift, 0))
        shared_refine(c, shift);
}

static void access_to_write(Checker *c, const Access *a, ev_u8 fresh_state) {
    settle_shift(c, a);
    if (a->kind != EV_ATOMIC && !is_rising(a) && !are_distinct(a))
        find_same_address(c, a);
    write_lanes(c, a, fresh_state);
}

void shared_access(Checker *c, const Access *a) {
    if (c->checks & EV_RACES && (a->kind == EV_ATOMIC || reads_flag(a)))
        flags_read(c, a);
    if (!is_load(a)) {
        const ev_u8 how = a->kind == EV_ATOMIC ? BY_ATOMIC : a->kind == EV_STRONG_WRITE ? IS_FLAG : 0;
        access_to_write(c, a, INITIALISED | how);
        if (c->checks & EV_RACES && a->kind >= EV_ATOMIC)
            flags_written(c, a);
        return;
    }
    if (reads_flag(a))
        c->read_purposes[a->site] |= READS_FLAGS;
    settle_shift(c, a);
    if (__builtin_expect(c->partial[a->warp], 0))
        read_in_part(c, a);
    else
        read_lanes(c, a);
}

void shared_launch_copy(Checker *c, const Access *a) { access_to_write(c, a, INITIALISED | IN_FLIGHT); }

/* The thread has waited for its copy: it now counts as a write of the thread at the current time. */
void shared_land_copy(Checker *c, ev_u32 thread, ev_u32 offset, ev_u32 bytes, ev_u32 site) {
    SharedShadow *s = &c->shared;
    const ev_u64 record = record_of(c->now, thread, site);
    for (ev_u32 g = offset >> s->shift; g < (offset + bytes) >> s->shift; g++) {
        if (!(s->state[g] & IN_FLIGHT) || thread_of(s->written[g]) != thread)
            continue; /* overwritten by another thread, which was reported */
        s->written[g] = record;
        s->state[g] = INITIALISED;
    }
}
