/* Applies an access to WIDTH neighbouring granules of shared memory at once. shared.c includes this once for every width. */
#ifdef WIDTH
#define JOINED(name, width) name##_##width
#define NAMED(name, width) JOINED(name, width)
#define U64 NAMED(u64, WIDTH)
#define U32 NAMED(u32, WIDTH)
#define U8 NAMED(u8, WIDTH)
#define AT(type, array, g) (*(type *)((array) + (g)))

typedef ev_u64 U64 __attribute__((ext_vector_type(WIDTH), aligned(8)));
typedef ev_u32 U32 __attribute__((ext_vector_type(WIDTH), aligned(4)));
typedef ev_u8 U8 __attribute__((ext_vector_type(WIDTH), aligned(1)));

/* For each granule, the first lane that accesses it. */
INLINE U64 NAMED(lane_of, WIDTH)(const Span *p, ev_u32 at) {
    const ev_u64 counted[8] = {0, 1, 2, 3, 4, 5, 6, 7};
    return ((AT(const U64, counted, 0) + at) >> p->lane_bits) + p->lane;
}

/* Records the lanes' reads; returns whether the granules need a detailed check. */
INLINE ev_u32 NAMED(read, WIDTH)(const Marks *m, const Span *p, ev_u32 at) {
    const ev_u32 g = p->first + at;
    U64 old = AT(U64, m->reads, g), own = (U64)1 << NAMED(lane_of, WIDTH)(p, at);
    U64 others = old & 0xffffffffu & ~own;
    /* Readers since the warp last synchronised are kept, with the time of the first; `others`: lanes that read again. */
    AT(U64, m->reads, g) = (((old >= m->full_sync) & (others != 0)) ? old : (U64)m->now) | own | p->same;
    AT(U32, m->last_read, g) = (U32)(ev_u32)(m->now >> TIME_SHIFT);
    AT(U32, m->sites, g) = (U32)m->site;
    return (__builtin_reduce_or(AT(U64, m->written, g) >= m->horizon) != 0) | __builtin_reduce_or(AT(U8, m->state, g) ^ (ev_u8)INITIALISED);
}

/* Whether granules that are written need a detailed check. */
INLINE ev_u32 NAMED(doubt, WIDTH)(const Marks *m, const Span *p, ev_u32 at) {
    const ev_u32 g = p->first + at;
    const U8 odd = (AT(U8, m->state, g) & m->state_bits) ^ m->state_expected;
    return (__builtin_reduce_or(AT(U64, m->written, g) >= m->horizon) != 0) |
           (__builtin_reduce_or(AT(U32, m->last_read, g) >= (ev_u32)(m->horizon >> TIME_SHIFT)) != 0) | __builtin_reduce_or(odd);
}

INLINE ev_u32 NAMED(write, WIDTH)(const Marks *m, const Span *p, ev_u32 at) {
    AT(U64, m->written, p->first + at) = (NAMED(lane_of, WIDTH)(p, at) << THREAD_SHIFT) + m->record;
    AT(U8, m->state, p->first + at) = (U8)m->fresh_state;
    return 0;
}

#undef JOINED
#undef NAMED
#undef U64
#undef U32
#undef U8
#undef AT
#undef WIDTH
#endif
