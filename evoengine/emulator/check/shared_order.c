/* Shared memory: finds accesses that are not ordered after earlier ones. */
#include "shared.h"

enum { WIDEST_GAP = 64 }; /* bytes: rows of shared memory are padded by 4 to 32 */

static void report_apart(Checker *c, ev_u32 kind, ev_u32 warp, ev_u32 lane, ev_u32 bytes, ev_u64 offset, ev_i64 distance, ev_u32 site,
                         ev_i32 other, ev_i32 other_site) {
    report(c, (Finding){.kind = kind, .space = EV_SHARED, .buffer = -1, .bytes = bytes, .offset = (ev_i64)offset, .distance = distance,
                        .thread = (ev_i32)(warp * 32 + lane), .site = (ev_i32)site, .other_thread = other, .other_site = other_site,
                        .other_block = other < 0 ? -1 : (ev_i64)c->block, .times = 1});
}

static void report_shared(Checker *c, ev_u32 kind, ev_u32 warp, ev_u32 lane, ev_u32 bytes, ev_u64 offset, ev_u32 site, ev_i32 other,
                          ev_i32 other_site) {
    report_apart(c, kind, warp, lane, bytes, offset, 0, site, other, other_site);
}

/* Reports a read of granule g, to which nothing was written. Where it lies in a narrow gap of what was written, such as the padding of
   rows, the instruction that wrote before the gap is the other site, the one behind it the end site, and the gap's bytes are the
   distance: a compiler may split one store into several. */
static void report_unwritten(Checker *c, const Access *a, ev_u32 lane, ev_u32 g) {
    const SharedShadow *s = &c->shared;
    const ev_u32 most = WIDEST_GAP >> s->shift;
    ev_u32 before = 1, after = 1;
    while (before <= most && before <= g && !(s->state[g - before] & INITIALISED))
        before++;
    while (after <= most && g + after < s->granules && !(s->state[g + after] & INITIALISED))
        after++;
    const ev_u32 gap = before + after - 1;
    const ev_u32 is_gap = before <= g && g + after < s->granules && gap <= most;
    report(c, (Finding){.kind = EV_UNINITIALISED, .space = EV_SHARED, .buffer = -1, .bytes = a->bytes,
                        .offset = (ev_i64)((ev_u64)g << s->shift), .distance = is_gap ? (ev_i64)gap << s->shift : 0,
                        .thread = (ev_i32)(a->warp * 32 + lane), .site = (ev_i32)a->site, .other_thread = -1,
                        .other_site = is_gap ? site_of(s->written[g - before]) : -1,
                        .end_site = is_gap ? site_of(s->written[g + after]) : -1, .other_block = -1, .times = 1});
}

/* Reports an access to granule g, to which a copy is in flight; the distance is that of async_pending. */
static void report_flying(Checker *c, ev_u32 kind, const Access *a, ev_u32 lane, ev_u32 g) {
    const ev_u64 record = c->shared.written[g], offset = (ev_u64)g << c->shared.shift;
    report_apart(c, kind, a->warp, lane, a->bytes, offset, async_pending(c, thread_of(record), (ev_u32)offset), a->site,
                 (ev_i32)thread_of(record), site_of(record));
}

/* Whether another warp wrote the granule by a strong access or an atomic operation. */
INLINE ev_u32 is_flag_of_another(const Checker *c, ev_u32 warp, ev_u32 g) {
    return c->shared.state[g] & (BY_ATOMIC | IS_FLAG) && thread_of(c->shared.written[g]) >> 5 != warp;
}

/* Checks the read of one granule; reports the first kind of finding. */
static void examine_read(Checker *c, const Access *a, ev_u32 lane, ev_u32 first, ev_u32 count) {
    const SharedShadow *s = &c->shared;
    const ev_u32 warp = a->warp, bytes = a->bytes, site = a->site;
    ev_u32 unwritten = 0, flying = 0, raced = 0;
    for (ev_u32 g = first; g < first + count; g++) {
        ev_u64 record = s->written[g];
        ev_u64 offset = (ev_u64)g << s->shift;
        if (!(s->state[g] & INITIALISED)) {
            if (!unwritten++)
                report_unwritten(c, a, lane, g);
        } else if (s->state[g] & IN_FLIGHT) {
            if (!flying++)
                report_flying(c, EV_ASYNC_READ, a, lane, g);
        } else if (!raced && c->checks & EV_RACES && !(a->is_poll && s->state[g] & BY_ATOMIC) &&
                   !(reads_flag(a) && is_flag_of_another(c, warp, g)) && !is_ordered(c, warp, lane, thread_of(record), time_of(record))) {
            raced = 1;
            report_shared(c, EV_READ_AFTER_WRITE, warp, lane, bytes, offset, site, (ev_i32)thread_of(record), site_of(record));
        }
    }
}

/* A thread of warp `other` that read granule g and is not ordered before the writer; -1: none. */
static ev_i32 unordered_reader(const Checker *c, ev_u32 warp, ev_u32 lane, ev_u32 other, ev_u32 g) {
    ev_u64 read = c->shared.reads[(ev_u64)other * c->shared.granules + g];
    for (ev_u32 lanes = (ev_u32)read; lanes; lanes &= lanes - 1)
        if (!is_ordered(c, warp, lane, other * 32 + lowest(lanes), time_of(read)))
            return (ev_i32)(other * 32 + lowest(lanes));
    return -1;
}

static void examine_write(Checker *c, const Access *a, ev_u32 lane, ev_u32 first, ev_u32 count) {
    const SharedShadow *s = &c->shared;
    const ev_u32 warp = a->warp, bytes = a->bytes, site = a->site, atomic = a->kind == EV_ATOMIC, strong = a->kind >= EV_ATOMIC;
    ev_u32 flying = 0, after_write = 0, after_read = 0;
    for (ev_u32 g = first; g < first + count; g++) {
        ev_u64 record = s->written[g];
        ev_u64 offset = (ev_u64)g << s->shift;
        if (s->state[g] & IN_FLIGHT) {
            if (!flying++)
                report_flying(c, EV_ASYNC_WRITE, a, lane, g);
        } else if (!after_write && c->checks & EV_RACES && !(atomic && s->state[g] & BY_ATOMIC) &&
                   !(strong && is_flag_of_another(c, warp, g)) && !is_ordered(c, warp, lane, thread_of(record), time_of(record))) {
            after_write = 1;
            report_shared(c, EV_WRITE_AFTER_WRITE, warp, lane, bytes, offset, site, (ev_i32)thread_of(record), site_of(record));
        }
        if (after_read || !(c->checks & EV_RACES) || s->last_read[g] < c->horizon[warp])
            continue;
        for (ev_u32 other = 0; other < c->warps && !after_read; other++) {
            ev_i32 reader = unordered_reader(c, warp, lane, other, g);
            if (reader < 0)
                continue;
            const ev_u32 purposes = c->read_purposes[s->read_sites[(ev_u64)other * s->granules + g]];
            if ((atomic && purposes & POLLS_THERE) || (strong && other != warp && purposes & READS_FLAGS))
                continue;
            after_read = 1;
            report_apart(c, EV_WRITE_AFTER_READ, warp, lane, bytes, offset, !(s->state[g] & INITIALISED), site, reader,
                         (ev_i32)s->read_sites[(ev_u64)other * s->granules + g]);
        }
    }
}

/* Whether `lanes` of this warp is only the lane that accesses granule `g`. */
INLINE ev_u32 is_own(const Span *p, ev_u32 g, ev_u32 lanes) {
    return !all_but_lowest(p->same) && lanes == 1u << (p->lane + ((g - p->first) >> p->lane_bits));
}

/* Whether the writer of the granule is ordered before this warp, or is the same thread. */
INLINE ev_u32 writer_is_ordered(const Checker *c, const Access *a, const Span *p, ev_u32 g) {
    const ev_u64 record = c->shared.written[g];
    const ev_u32 thread = thread_of(record), warp = thread >> 5;
    return time_of(record) < c->seen[a->warp][warp] || (warp == a->warp && is_own(p, g, 1u << (thread & 31)));
}

/* Whether all these granules were written by threads that are ordered before this warp, or are the same. */
static ev_u32 reads_are_ordered(const Checker *c, const Access *a, const Span *p) {
    for (ev_u32 g = p->first; g < p->first + p->count; g++)
        if (c->shared.state[g] != INITIALISED || !writer_is_ordered(c, a, p, g))
            return 0;
    return 1;
}

/* Whether all writers of these granules are ordered before this warp, or are the same threads. */
static ev_u32 writes_are_ordered(const Checker *c, const Access *a, const Span *p) {
    const ev_u32 atomic = a->kind == EV_ATOMIC;
    const ev_u8 *state = c->shared.state;
    for (ev_u32 g = p->first; g < p->first + p->count; g++) {
        if (state[g] & IN_FLIGHT || (atomic && !(state[g] & INITIALISED)))
            return 0;
        if (!writer_is_ordered(c, a, p, g) && !(atomic && state[g] & BY_ATOMIC))
            return 0;
    }
    return 1;
}

/* Whether all readers of these granules are ordered before this warp, or are the same threads. */
static ev_u32 readers_are_ordered(const Checker *c, const Access *a, const Span *p) {
    for (ev_u32 warp = 0; warp < c->warps; warp++) {
        const ev_u64 *reads = c->shared.reads + (ev_u64)warp * c->shared.granules + p->first;
        const ev_u64 limit = (ev_u64)c->seen[a->warp][warp] << TIME_SHIFT;
        ev_u32 late = 0;
        for (ev_u32 i = 0; i < p->count; i++)
            late |= reads[i] >= limit;
        for (ev_u32 i = 0; late && i < p->count; i++)
            if (reads[i] >= limit && (warp != a->warp || !is_own(p, p->first + i, (ev_u32)reads[i])))
                return 0;
    }
    return 1;
}

/* A granule that passes in blocks.h is not reported here either, so a whole span may be checked again for one that did not. */
OUTLINE void examine_reads(Checker *c, const Access *a, const Span *p) {
    if (reads_are_ordered(c, a, p))
        return;
    const ev_u32 shift = c->shared.shift;
    for (ev_u32 lanes = p->lanes; lanes; lanes &= lanes - 1)
        examine_read(c, a, lowest(lanes), offset_of(a, lowest(lanes)) >> shift, a->bytes >> shift);
}

/* An atomic operation also reads. */
static void examine_atomic(Checker *c, const Access *a, ev_u32 lane, ev_u32 first, ev_u32 count) {
    for (ev_u32 g = first; g < first + count; g++)
        if (!(c->shared.state[g] & INITIALISED)) {
            report_unwritten(c, a, lane, g);
            return;
        }
}

OUTLINE void examine_writes(Checker *c, const Access *a, const Span *p) {
    if (writes_are_ordered(c, a, p) && readers_are_ordered(c, a, p))
        return;
    const ev_u32 shift = c->shared.shift, count = a->bytes >> shift;
    for (ev_u32 lanes = p->lanes; lanes; lanes &= lanes - 1) {
        ev_u32 lane = lowest(lanes), first = offset_of(a, lane) >> shift;
        examine_write(c, a, lane, first, count);
        if (a->kind == EV_ATOMIC)
            examine_atomic(c, a, lane, first, count);
    }
}
