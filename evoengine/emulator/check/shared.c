/* Shared memory: who wrote and who read each granule. */
#include "shadow.h"

enum { SITE_BITS = 21, THREAD_SHIFT = 21, TIME_SHIFT = 32 };

INLINE ev_u64 record_of(ev_u32 time, ev_u32 thread, ev_u32 site) {
    return (ev_u64)time << TIME_SHIFT | (ev_u64)thread << THREAD_SHIFT | (site & ((1u << SITE_BITS) - 1));
}
INLINE ev_u32 time_of(ev_u64 record) { return (ev_u32)(record >> TIME_SHIFT); }
INLINE ev_u32 thread_of(ev_u64 record) { return (ev_u32)(record >> THREAD_SHIFT) & 0x7ff; }
INLINE ev_i32 site_of(ev_u64 record) { return (ev_i32)(record & ((1u << SITE_BITS) - 1)); }

INLINE void report_shared(Checker *c, ev_u32 kind, ev_u32 warp, ev_u32 lane, ev_u32 bytes, ev_u64 offset, ev_u32 site, ev_i32 other,
                          ev_i32 other_site) {
    report(c, (Finding){.kind = kind, .space = EV_SHARED, .buffer = -1, .bytes = bytes, .offset = (ev_i64)offset,
                        .thread = (ev_i32)(warp * 32 + lane), .site = (ev_i32)site, .other_thread = other, .other_site = other_site,
                        .other_block = other < 0 ? -1 : (ev_i64)c->block, .times = 1});
}

ev_u32 shared_bounds(Checker *c, ev_u32 warp, ev_u32 mask, ev_u32 bytes, const ev_u64 *address, ev_u32 site) {
    ev_u32 allowed = mask;
    ev_u64 size = c->shared_bytes;
    for (ev_u32 lanes = mask; lanes; lanes &= lanes - 1) {
        ev_u32 lane = lowest(lanes);
        ev_u64 offset = (ev_u32)address[lane]; /* addresses of the shared window have 32 bits */
        if (__builtin_expect(offset + bytes <= size && !(offset & ((bytes & -bytes) - 1)), 1))
            continue;
        ev_i64 place = (ev_i32)address[lane], distance = place < 0 ? place : place + bytes - (ev_i64)size;
        ev_u32 stray = offset + bytes > size;
        report(c, (Finding){.kind = stray ? EV_OUT_OF_BOUNDS : EV_MISALIGNED, .space = EV_SHARED, .buffer = -1, .bytes = bytes,
                            .offset = place, .distance = stray ? distance : 0, .thread = (ev_i32)(warp * 32 + lane),
                            .site = (ev_i32)site, .other_thread = -1, .other_site = -1, .other_block = -1, .times = 1});
        allowed &= ~(1u << lane);
    }
    return allowed;
}

/* What is wrong with reading one granule; the first kind found is reported. */
static OUTLINE void examine_read(Checker *c, ev_u32 warp, ev_u32 lane, ev_u32 first, ev_u32 count, ev_u32 bytes, ev_u32 site, ev_u32 atomic) {
    const SharedShadow *s = &c->shared;
    ev_u32 unwritten = 0, flying = 0, raced = 0;
    for (ev_u32 g = first; g < first + count; g++) {
        ev_u64 record = s->written[g];
        ev_u64 offset = (ev_u64)g << s->shift;
        if (!(s->state[g] & INITIALISED)) {
            if (!unwritten++)
                report_shared(c, EV_UNINITIALISED, warp, lane, bytes, offset, site, -1, -1);
        } else if (s->state[g] & IN_FLIGHT) {
            if (!flying++)
                report_shared(c, EV_ASYNC_READ, warp, lane, bytes, offset, site, (ev_i32)thread_of(record), site_of(record));
        } else if (!raced && c->checks & EV_RACES && !(atomic && s->state[g] & BY_ATOMIC) &&
                   !is_ordered(c, warp, lane, thread_of(record), time_of(record))) {
            raced = 1;
            report_shared(c, EV_READ_AFTER_WRITE, warp, lane, bytes, offset, site, (ev_i32)thread_of(record), site_of(record));
        }
    }
}

/* A thread of `other` that read granule g and is not ordered before the writer; -1: none. */
static ev_i32 unordered_reader(const Checker *c, ev_u32 warp, ev_u32 lane, ev_u32 other, ev_u32 g) {
    ev_u64 read = c->shared.reads[(ev_u64)other * c->shared.granules + g];
    for (ev_u32 lanes = (ev_u32)read; lanes; lanes &= lanes - 1)
        if (!is_ordered(c, warp, lane, other * 32 + lowest(lanes), time_of(read)))
            return (ev_i32)(other * 32 + lowest(lanes));
    return -1;
}

static OUTLINE void examine_write(Checker *c, ev_u32 warp, ev_u32 lane, ev_u32 first, ev_u32 count, ev_u32 bytes, ev_u32 site, ev_u32 atomic) {
    const SharedShadow *s = &c->shared;
    ev_u32 flying = 0, after_write = 0, after_read = 0;
    for (ev_u32 g = first; g < first + count; g++) {
        ev_u64 record = s->written[g];
        ev_u64 offset = (ev_u64)g << s->shift;
        if (s->state[g] & IN_FLIGHT) {
            if (!flying++)
                report_shared(c, EV_ASYNC_WRITE, warp, lane, bytes, offset, site, (ev_i32)thread_of(record), site_of(record));
        } else if (!after_write && c->checks & EV_RACES && !(atomic && s->state[g] & BY_ATOMIC) &&
                   !is_ordered(c, warp, lane, thread_of(record), time_of(record))) {
            after_write = 1;
            report_shared(c, EV_WRITE_AFTER_WRITE, warp, lane, bytes, offset, site, (ev_i32)thread_of(record), site_of(record));
        }
        if (after_read || !(c->checks & EV_RACES) || s->last_read[g] < c->horizon[warp])
            continue;
        for (ev_u32 other = 0; other < c->warps && !after_read; other++) {
            ev_i32 reader = unordered_reader(c, warp, lane, other, g);
            if (reader < 0)
                continue;
            after_read = 1;
            report_shared(c, EV_WRITE_AFTER_READ, warp, lane, bytes, offset, site, reader,
                          (ev_i32)s->read_sites[(ev_u64)other * s->granules + g]);
        }
    }
}

/* Remembers that the lane reads, where part of its warp was ordered by itself: other lanes stay if they are not ordered before it. */
static OUTLINE void merge_reads(Checker *c, ev_u32 warp, ev_u32 lane, ev_u32 first, ev_u32 count) {
    ev_u64 *reads = c->shared.reads + (ev_u64)warp * c->shared.granules;
    for (ev_u32 g = first; g < first + count; g++) {
        ev_u64 old = reads[g];
        ev_u32 kept = 0;
        for (ev_u32 lanes = (ev_u32)old & ~(1u << lane); lanes; lanes &= lanes - 1)
            if (!is_ordered(c, warp, lane, warp * 32 + lowest(lanes), time_of(old)))
                kept |= 1u << lowest(lanes);
        /* The older time is kept: it may miss a race between lanes that were ordered in part, and never invents one. */
        reads[g] = (ev_u64)(kept ? time_of(old) : c->now) << TIME_SHIFT | kept | 1u << lane;
    }
}

INLINE void read_lanes(Checker *c, ev_u32 warp, ev_u32 mask, ev_u32 bytes, const ev_u64 *address, ev_u32 site, ev_u32 count) {
    SharedShadow *s = &c->shared;
    const ev_u32 horizon = c->horizon[warp], full_sync = c->full_sync[warp], now = c->now, shift = s->shift, partial = c->partial[warp];
    const ev_u64 *restrict written = s->written;
    const ev_u8 *restrict state = s->state;
    ev_u32 *restrict last_read = s->last_read;
    ev_u64 *restrict reads = s->reads + (ev_u64)warp * s->granules;
    ev_u32 *restrict sites = s->read_sites + (ev_u64)warp * s->granules;
    for (ev_u32 lanes = mask; lanes; lanes &= lanes - 1) {
        ev_u32 lane = lowest(lanes), first = (ev_u32)address[lane] >> shift, suspect = 0;
        const ev_u64 fresh = (ev_u64)now << TIME_SHIFT | 1u << lane;
        for (ev_u32 i = 0; i < count; i++)
            suspect |= (time_of(written[first + i]) >= horizon) | (state[first + i] != INITIALISED);
        if (__builtin_expect(suspect != 0, 0))
            examine_read(c, warp, lane, first, count, bytes, site, 0);
        if (__builtin_expect(partial, 0))
            merge_reads(c, warp, lane, first, count);
        for (ev_u32 i = 0; i < count && !partial; i++) {
            ev_u64 old = reads[first + i];
            ev_u64 joins = -(ev_u64)((time_of(old) >= full_sync) & (((ev_u32)old & ~(1u << lane)) != 0));
            reads[first + i] = (fresh & ~joins) | ((old | 1u << lane) & joins);
        }
        for (ev_u32 i = 0; i < count; i++)
            last_read[first + i] = now;
        for (ev_u32 i = 0; i < count; i++)
            sites[first + i] = site;
    }
}

INLINE void write_lanes(Checker *c, ev_u32 warp, ev_u32 mask, ev_u32 bytes, const ev_u64 *address, ev_u32 site, ev_u32 atomic, ev_u32 count) {
    SharedShadow *s = &c->shared;
    const ev_u32 horizon = c->horizon[warp], shift = s->shift;
    for (ev_u32 lanes = mask; lanes; lanes &= lanes - 1) {
        ev_u32 lane = lowest(lanes), first = (ev_u32)address[lane] >> shift, suspect = 0;
        for (ev_u32 i = 0; i < count; i++)
            suspect |= (time_of(s->written[first + i]) >= horizon) | (s->last_read[first + i] >= horizon) | (s->state[first + i] & IN_FLIGHT);
        if (__builtin_expect(suspect != 0, 0))
            examine_write(c, warp, lane, first, count, bytes, site, atomic);
        if (atomic)
            for (ev_u32 i = 0; i < count; i++)
                if (!(s->state[first + i] & INITIALISED)) {
                    report_shared(c, EV_UNINITIALISED, warp, lane, bytes, (ev_u64)(first + i) << shift, site, -1, -1);
                    break;
                }
    }
    /* Recorded only after all lanes were examined: lanes of one instruction do not race with one another. */
    const ev_u8 state = INITIALISED | (atomic ? BY_ATOMIC : 0);
    for (ev_u32 lanes = mask; lanes; lanes &= lanes - 1) {
        ev_u32 lane = lowest(lanes), first = (ev_u32)address[lane] >> shift;
        const ev_u64 record = record_of(c->now, warp * 32 + lane, site);
        for (ev_u32 i = 0; i < count; i++) {
            s->written[first + i] = record;
            s->state[first + i] = state;
        }
    }
}

INLINE void run_lanes(Checker *c, ev_u32 warp, ev_u32 mask, ev_u32 kind, ev_u32 bytes, const ev_u64 *address, ev_u32 site, ev_u32 count) {
    if (kind == EV_READ)
        read_lanes(c, warp, mask, bytes, address, site, count);
    else
        write_lanes(c, warp, mask, bytes, address, site, kind == EV_ATOMIC, count);
}

INLINE ev_u32 is_rising(ev_u32 mask, ev_u32 bytes, const ev_u64 *address) {
    ev_u64 end = 0;
    for (ev_u32 lanes = mask; lanes; lanes &= lanes - 1) {
        if (address[lowest(lanes)] < end)
            return 0;
        end = address[lowest(lanes)] + bytes;
    }
    return 1;
}

/* Lanes that lose when an instruction's lanes write the same bytes: one wins, which one is undefined. */
static void find_same_address(Checker *c, ev_u32 warp, ev_u32 mask, ev_u32 bytes, const ev_u64 *address, ev_u32 site) {
    ev_u32 slots[64], lost = 0;
    memset(slots, 0xff, sizeof slots);
    for (ev_u32 lanes = mask; lanes; lanes &= lanes - 1) {
        ev_u32 lane = lowest(lanes), at = ((ev_u32)address[lane] / bytes * 0x9E3779B1u) >> 26;
        while (slots[at] != ~0u && address[slots[at]] != address[lane])
            at = (at + 1) & 63;
        if (slots[at] != ~0u && !lost++)
            report_shared(c, EV_SAME_ADDRESS_WRITE, warp, lane, bytes, address[lane], site, (ev_i32)(warp * 32 + slots[at]), (ev_i32)site);
        slots[at] = lane;
    }
    c->counts.same_address_writes += lost;
}

INLINE void settle_shift(Checker *c, ev_u32 mask, ev_u32 bytes, const ev_u64 *address) {
    ev_u32 narrow = bytes;
    for (ev_u32 lanes = mask; lanes; lanes &= lanes - 1)
        narrow |= (ev_u32)address[lowest(lanes)];
    ev_u32 shift = lowest(narrow | 4);
    if (__builtin_expect(shift < c->shared.shift, 0))
        shared_refine(c, shift);
}

void shared_access(Checker *c, ev_u32 warp, ev_u32 mask, ev_u32 kind, ev_u32 bytes, const ev_u64 *address, ev_u32 site) {
    if (kind >= EV_STRONG_READ)
        kind = kind == EV_STRONG_READ ? EV_READ : EV_WRITE;
    settle_shift(c, mask, bytes, address);
    if (kind == EV_WRITE && !is_rising(mask, bytes, address))
        find_same_address(c, warp, mask, bytes, address, site);
    ev_u32 count = bytes >> c->shared.shift;
    switch (count) {
    case 1: run_lanes(c, warp, mask, kind, bytes, address, site, 1); break;
    case 2: run_lanes(c, warp, mask, kind, bytes, address, site, 2); break;
    case 4: run_lanes(c, warp, mask, kind, bytes, address, site, 4); break;
    case 8: run_lanes(c, warp, mask, kind, bytes, address, site, 8); break;
    default: run_lanes(c, warp, mask, kind, bytes, address, site, count); break;
    }
}

void shared_launch_copy(Checker *c, ev_u32 warp, ev_u32 mask, ev_u32 bytes, const ev_u64 *address, ev_u32 site) {
    shared_access(c, warp, mask, EV_WRITE, bytes, address, site);
    ev_u32 shift = c->shared.shift;
    for (ev_u32 lanes = mask; lanes; lanes &= lanes - 1)
        memset(c->shared.state + ((ev_u32)address[lowest(lanes)] >> shift), INITIALISED | IN_FLIGHT, bytes >> shift);
}

/* The thread has waited for its copy: from now on it counts as written by the thread at this moment. */
void shared_land_copy(Checker *c, ev_u32 thread, ev_u32 offset, ev_u32 bytes, ev_u32 site) {
    SharedShadow *s = &c->shared;
    const ev_u64 record = record_of(c->now, thread, site);
    for (ev_u32 g = offset >> s->shift; g < (offset + bytes) >> s->shift; g++) {
        if (!(s->state[g] & IN_FLIGHT) || thread_of(s->written[g]) != thread)
            continue; /* another's write went over it: that was reported */
        s->written[g] = record;
        s->state[g] = INITIALISED;
    }
}
