/* Flags in shared memory, by which warps of a block order what they do without a barrier: a warp writes data, fences and writes the
 * flag; another reads the flag and then the data. Only volatile, relaxed, acquire and release accesses and atomic operations write and
 * read flags. What a warp has published by a flag comes before what the warps do that read it after that. This is permissive: the
 * reader needs no fence of its own, and all its lanes count as readers. */
#include "shared.h"

enum { MOST_FLAGS = 4096, WORD_BITS = 2 };

/* What comes before a flag: of each warp all accesses before `seen`, and those of `lanes` before `seen_by_lanes`. */
struct Flag {
    ev_u32 seen[MAX_WARPS], seen_by_lanes[MAX_WARPS], lanes[MAX_WARPS];
};

ev_u32 flags_open(Checker *c) {
    c->flag_numbers = calloc(((ev_u64)c->shared_bytes >> WORD_BITS) + 1, sizeof(ev_u16));
    return c->flag_numbers != NULL;
}

void flags_close(Checker *c) {
    free(c->flag_numbers);
    free(c->flags);
}

/* A block has no flags and no fences yet. */
void flags_block(Checker *c) {
    if (c->flag_count)
        memset(c->flag_numbers, 0, (((ev_u64)c->shared_bytes >> WORD_BITS) + 1) * sizeof(ev_u16));
    c->flag_count = 0;
    memset(c->fence_time, 0, sizeof c->fence_time);
}

INLINE ev_u16 *number_of_flag(Checker *c, const Access *a, ev_u32 lane) {
    return c->flag_numbers + ((ev_u32)a->address[lane] >> WORD_BITS);
}

/* The number of the flag that a lane writes behind a fence. Those beyond MOST_FLAGS share the last one: that may miss a race, but
 * never reports a false one. 0 without memory. */
static ev_u32 new_flag(Checker *c, const Access *a, ev_u32 lane) {
    ev_u16 *number = number_of_flag(c, a, lane);
    if (!c->flags)
        c->flags = malloc(MOST_FLAGS * sizeof(struct Flag));
    if (!c->flags)
        return 0;
    if (!*number && c->flag_count < MOST_FLAGS)
        memset(c->flags + c->flag_count++, 0, sizeof(struct Flag));
    if (!*number)
        *number = (ev_u16)c->flag_count;
    return *number;
}

INLINE void raise(ev_u32 *time, ev_u32 other) { *time = other > *time ? other : *time; }

void ev_check_block_fence(Checker *c, ev_u32 warp, ev_u32 mask) {
    (void)mask;
    c->fence_time[warp] = ++c->now;
    memcpy(c->fenced_seen[warp], c->seen[warp], sizeof c->seen[warp]);
    memcpy(c->fenced_by_lanes[warp], c->seen_by_lanes[warp], sizeof c->seen_by_lanes[warp]);
    memcpy(c->fenced_lanes[warp], c->seen_lanes[warp], sizeof c->seen_lanes[warp]);
}

/* The lane, and those of its warp with which a part of the warp has synchronised it since all of them did. */
static ev_u32 lanes_known_to(const Checker *c, ev_u32 warp, ev_u32 lane) {
    ev_u32 found = 1u << lane;
    for (ev_u32 other = 0; c->partial[warp] && other < 32; other++)
        found |= (ev_u32)(c->lane_seen[warp][lane][other] > c->full_sync[warp]) << other;
    return found;
}

/* The lanes of an access have written a flag. An atomic operation adds to what comes before it, another write takes its place. */
void flags_written(Checker *c, const Access *a) {
    const ev_u32 warp = a->warp, time = c->fence_time[warp];
    /* the other lanes' accesses are published only if the warp has synchronised since */
    const ev_u32 whole = time < c->full_sync[warp] ? time : c->full_sync[warp];
    for (ev_u32 lanes = a->mask; lanes; lanes &= lanes - 1) {
        const ev_u32 number = time ? new_flag(c, a, lowest(lanes)) : *number_of_flag(c, a, lowest(lanes));
        struct Flag *flag = c->flags + number - 1;
        if (number && number < MOST_FLAGS && a->kind != EV_ATOMIC)
            memset(flag, 0, sizeof *flag);
        if (!number || !time)
            continue;
        for (ev_u32 v = 0; v < c->warps; v++) {
            raise(&flag->seen[v], v == warp ? whole : c->fenced_seen[warp][v]);
            raise(&flag->seen_by_lanes[v], v == warp ? time : c->fenced_by_lanes[warp][v]);
            flag->lanes[v] |= v == warp ? lanes_known_to(c, warp, lowest(lanes)) : c->fenced_lanes[warp][v];
        }
    }
}

/* What the warp itself did comes before a flag of another one that had read its own: it orders the warp's lanes, too. */
static void own_lanes_seen(Checker *c, ev_u32 warp, const struct Flag *flag) {
    raise(&c->full_sync[warp], flag->seen[warp]);
    if (flag->seen_by_lanes[warp] <= c->full_sync[warp])
        return;
    for (ev_u32 lanes = flag->lanes[warp]; lanes; lanes &= lanes - 1)
        for (ev_u32 lane = 0; lane < 32; lane++)
            raise(&c->lane_seen[warp][lane][lowest(lanes)], flag->seen_by_lanes[warp]);
    c->partial[warp] = 1;
}

/* The lanes of an access have read flags. */
void flags_read(Checker *c, const Access *a) {
    const ev_u32 warp = a->warp;
    ev_u32 found = 0;
    for (ev_u32 lanes = a->mask; c->flag_count && lanes; lanes &= lanes - 1) {
        const ev_u32 number = *number_of_flag(c, a, lowest(lanes));
        const struct Flag *flag = c->flags + number - 1;
        if (number)
            own_lanes_seen(c, warp, flag);
        for (ev_u32 v = 0; number && v < c->warps; v++) {
            if (v == warp)
                continue;
            raise(&c->seen[warp][v], flag->seen[v]);
            raise(&c->seen_by_lanes[warp][v], flag->seen_by_lanes[v]);
            c->seen_lanes[warp][v] |= flag->lanes[v];
        }
        found |= number;
    }
    if (found)
        move_horizon(c, warp);
}
