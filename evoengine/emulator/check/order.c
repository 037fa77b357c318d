/* The happens-before order: barriers of the block, arrivals, synchronisation of a warp's lanes, fences. */
#include "shadow.h"

INLINE ev_u32 larger(ev_u32 a, ev_u32 b) { return a > b ? a : b; }
INLINE ev_u32 smaller(ev_u32 a, ev_u32 b) { return a < b ? a : b; }

void move_horizon(Checker *c, ev_u32 warp) {
    ev_u32 least = ~0u;
    for (ev_u32 v = 0; v < c->warps; v++) {
        /* An exited warp reaches no more barriers: it would hold the horizon back although all its accesses are ordered. */
        ev_u32 settled = c->exited >> v & 1 && c->last_access[v] < c->seen[warp][v];
        if (v != warp && !settled)
            least = smaller(least, c->seen[warp][v]);
    }
    c->others_seen[warp] = least;
    c->horizon[warp] = smaller(least, c->full_sync[warp]);
}

static void sync_whole_warp(Checker *c, ev_u32 warp, ev_u32 time) {
    c->full_sync[warp] = time;
    c->seen[warp][warp] = time;
    c->partial[warp] = 0;
    c->horizon[warp] = smaller(c->others_seen[warp], time);
}

void order_block(Checker *c) {
    c->block_start = c->now;
    ev_u32 time = ++c->now;
    for (ev_u32 w = 0; w < c->warps; w++) {
        for (ev_u32 v = 0; v < c->warps; v++)
            c->seen[w][v] = time;
        c->others_seen[w] = c->warps > 1 ? time : ~0u;
        sync_whole_warp(c, w, time);
    }
    memset(c->arrived, 0, sizeof c->arrived);
    memset(c->met, 0, sizeof c->met);
    memset(c->last_access, 0, sizeof c->last_access);
    memset(c->seen_by_lanes, 0, sizeof c->seen_by_lanes);
    memset(c->seen_lanes, 0, sizeof c->seen_lanes);
    c->fenced = c->acquired = c->exited = 0;
}

void ev_check_warp_sync(Checker *c, ev_u32 warp, ev_u32 mask) {
    ev_u32 time = ++c->now;
    if ((mask & c->whole[warp]) == c->whole[warp]) {
        sync_whole_warp(c, warp, time);
        return;
    }
    ev_u32 joined[32] = {0};
    for (ev_u32 lanes = mask; lanes; lanes &= lanes - 1)
        for (ev_u32 m = 0; m < 32; m++)
            joined[m] = larger(joined[m], c->lane_seen[warp][lowest(lanes)][m]);
    for (ev_u32 m = 0; m < 32; m++)
        if (mask >> m & 1)
            joined[m] = time;
    for (ev_u32 lanes = mask; lanes; lanes &= lanes - 1)
        memcpy(c->lane_seen[warp][lowest(lanes)], joined, sizeof joined);
    c->partial[warp] = 1;
}

void ev_check_arrive(Checker *c, ev_u32 barrier, ev_u32 warp) {
    ev_u32 time = ++c->now, *row = c->arrivals[barrier & (BARRIERS - 1)];
    sync_whole_warp(c, warp, time);
    if (!c->arrived[barrier & (BARRIERS - 1)])
        memset(row, 0, sizeof c->arrivals[0]);
    c->arrived[barrier & (BARRIERS - 1)] |= 1u << warp;
    for (ev_u32 v = 0; v < c->warps; v++)
        row[v] = larger(row[v], c->seen[warp][v]);
}

void ev_check_wait(Checker *c, ev_u32 warp, ev_u32 site) { c->wait_site[warp] = site; }

/* Whether the warp came to a barrier after an earlier meeting there. */
static ev_u32 is_after(const Checker *c, ev_u32 warp, const Meeting *met) {
    for (ev_u32 warps = met->waited; warps; warps &= warps - 1)
        if (c->seen[warp][lowest(warps)] >= met->time)
            return 1;
    return 0;
}

/* Reports the first of the `warps` that meet at this barrier which nothing orders behind the last meeting there. A warp that meets no
   other cannot meet the wrong one. */
static void report_mixed(Checker *c, ev_u32 barrier, ev_u32 warps) {
    const Meeting *met = &c->met[barrier];
    const ev_u32 before = met->waited | met->arrived;
    if (!before || !(all_but_lowest(before) | all_but_lowest(warps | c->arrived[barrier])))
        return;
    for (warps &= ~before; warps; warps &= warps - 1)
        if (!is_after(c, lowest(warps), met)) {
            report(c, (Finding){.kind = EV_MIXED_BARRIER, .space = EV_SHARED, .buffer = -1, .offset = (ev_i64)barrier,
                                .thread = (ev_i32)(lowest(warps) * 32), .site = (ev_i32)c->wait_site[lowest(warps)],
                                .other_thread = (ev_i32)(lowest(met->waited) * 32), .other_site = (ev_i32)met->site, .other_block = -1,
                                .times = 1});
            return;
        }
}

INLINE ev_u32 whole_block(const Checker *c) { return c->warps == MAX_WARPS ? ~0u : (1u << c->warps) - 1; }

/* What some of the joining warps have seen of single lanes, all that waited have seen. */
static void join_by_lanes(Checker *c, ev_u32 joining, ev_u32 waited) {
    for (ev_u32 v = 0; v < c->warps; v++) {
        ev_u32 time = 0, lanes = 0;
        for (ev_u32 warps = joining; warps; warps &= warps - 1) {
            time = larger(time, c->seen_by_lanes[lowest(warps)][v]);
            lanes |= c->seen_lanes[lowest(warps)][v];
        }
        for (ev_u32 warps = time ? waited : 0; warps; warps &= warps - 1) {
            c->seen_by_lanes[lowest(warps)][v] = time;
            c->seen_lanes[lowest(warps)][v] = lanes;
        }
    }
}

void ev_check_barrier(Checker *c, ev_u32 barrier, ev_u32 warps_lo, ev_u32 warps_hi) {
    (void)warps_hi; /* blocks have at most 32 warps */
    ev_u32 time = ++c->now, joined[MAX_WARPS] = {0};
    barrier &= BARRIERS - 1;
    if (c->checks & EV_RACES)
        report_mixed(c, barrier, warps_lo);
    c->met[barrier] = (Meeting){warps_lo, c->arrived[barrier], time, c->wait_site[lowest(warps_lo)]};
    if (c->arrived[barrier])
        memcpy(joined, c->arrivals[barrier], sizeof joined);
    c->arrived[barrier] = 0;
    /* A barrier of the whole block counts exited warps as arrived (PTX ISA, exit): their accesses come before it, too. */
    const ev_u32 ended = c->exited & ~warps_lo;
    const ev_u32 joining = (warps_lo | ended) == whole_block(c) ? warps_lo | ended : warps_lo;
    for (ev_u32 warps = joining; warps; warps &= warps - 1)
        for (ev_u32 v = 0; v < c->warps; v++)
            joined[v] = larger(joined[v], c->seen[lowest(warps)][v]);
    for (ev_u32 warps = joining; warps; warps &= warps - 1)
        joined[lowest(warps)] = time;
    if (c->flag_count)
        join_by_lanes(c, joining, warps_lo);
    for (ev_u32 warps = warps_lo; warps; warps &= warps - 1) {
        ev_u32 warp = lowest(warps);
        memcpy(c->seen[warp], joined, c->warps * sizeof(ev_u32));
        sync_whole_warp(c, warp, time);
        move_horizon(c, warp);
    }
    if (joining == whole_block(c))
        sectors_meet(c);
    c->counts.barriers += (ev_u32)__builtin_popcount(warps_lo);
}

void ev_check_exit(Checker *c, ev_u32 warp) {
    settle_writes(c);
    c->exited |= 1u << warp;
}

void ev_check_fence(Checker *c, ev_u32 warp, ev_u32 mask) {
    c->fenced = ++c->now - c->block_start;
    ev_check_block_fence(c, warp, mask);
}

void ev_check_divergent_barrier(Checker *c, ev_u32 warp, ev_u32 mask, ev_u32 live, ev_u32 site) {
    ev_u32 missing = live & ~mask;
    if (!mask || !missing) /* no lane waits, or all do */
        return;
    report(c, (Finding){.kind = EV_DIVERGENT_BARRIER, .space = EV_SHARED, .buffer = -1, .thread = (ev_i32)(warp * 32 + lowest(mask | 1u << 31)),
                        .site = (ev_i32)site, .other_thread = (ev_i32)(warp * 32 + lowest(missing)), .other_site = -1,
                        .other_block = -1, .times = 1});
}
