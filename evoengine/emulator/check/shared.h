/* Shared memory: the records of a granule, and the granules that lanes access. */
#ifndef EV_SHARED_H
#define EV_SHARED_H

#include "shadow.h"

enum { SITE_BITS = 21, THREAD_SHIFT = 21, TIME_SHIFT = 32 };

INLINE ev_u64 record_of(ev_u32 time, ev_u32 thread, ev_u32 site) {
    return (ev_u64)time << TIME_SHIFT | (ev_u64)thread << THREAD_SHIFT | (site & ((1u << SITE_BITS) - 1));
}
INLINE ev_u32 time_of(ev_u64 record) { return (ev_u32)(record >> TIME_SHIFT); }
INLINE ev_u32 thread_of(ev_u64 record) { return (ev_u32)(record >> THREAD_SHIFT) & 0x7ff; }
INLINE ev_i32 site_of(ev_u64 record) { return (ev_i32)(record & ((1u << SITE_BITS) - 1)); }

/* Addresses of the shared window have 32 bits. */
INLINE ev_u32 offset_of(const Access *a, ev_u32 lane) { return (ev_u32)a->address[lane]; }

/* Neighbouring granules that lanes of a warp access: contiguous in lane order, or the same for all lanes. */
typedef struct {
    ev_u32 first, count;
    ev_u32 lane, lane_bits; /* the first lane, and the logarithm of the number of granules per lane */
    ev_u32 lanes, same;     /* all lanes; those with the same granules */
} Span;

enum { SAME = 31 }; /* as lane_bits: no granule belongs to a later lane */

INLINE Span lane_span(const Access *a, ev_u32 lane, ev_u32 shift, ev_u32 count) {
    return (Span){.first = offset_of(a, lane) >> shift, .count = count, .lane = lane, .lane_bits = SAME, .lanes = 1u << lane};
}

/* The span of an access that is one run or one address. */
INLINE Span whole_span(const Access *a, ev_u32 shift) {
    Span span = lane_span(a, lowest(a->mask), shift, a->bytes >> shift);
    span.lanes = a->mask;
    if (is_one_place(a)) {
        span.same = a->mask;
    } else {
        span.lane_bits = lowest(span.count | 1u << SAME);
        span.count *= (ev_u32)__builtin_popcount(a->mask);
    }
    return span;
}

/* Whether a volatile, relaxed or acquire load reads something that controls what is done next. */
INLINE ev_u32 reads_flag(const Access *a) { return a->kind == EV_STRONG_READ && !a->is_data; }

/* shared_order.c: report what is wrong with these granules, lane by lane */
void examine_reads(Checker *, const Access *, const Span *);
void examine_writes(Checker *, const Access *, const Span *);

#endif
