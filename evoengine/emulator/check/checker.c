/* Creates and frees checkers, and dispatches each access to the check of its memory space. */
#include "shadow.h"

Checker *ev_check_new(CheckedLaunch *launch, ev_u32 shared_bytes, ev_u32 threads, ev_u32 local_bytes_per_thread, ev_u32 checks, ev_u32 sites) {
    if (!threads || threads > MAX_WARPS * 32)
        return NULL;
    Checker *c = calloc(1, sizeof *c);
    if (!c)
        return NULL;
    c->launch = launch;
    c->shared_bytes = shared_bytes;
    c->threads = threads;
    c->warps = (threads + 31) / 32;
    c->local_bytes = local_bytes_per_thread;
    c->checks = checks;
    c->sites = sites;
    for (ev_u32 w = 0; w < c->warps; w++)
        c->whole[w] = threads - w * 32 >= 32 ? ~0u : (1u << (threads - w * 32)) - 1;
    c->site_counts = calloc((ev_u64)sites + 1, sizeof(SiteCounts));
    c->read_purposes = calloc((ev_u64)sites + 1, 1);
    c->local = calloc((ev_u64)c->warps * 32 * local_bytes_per_thread + 1, 1);
    if (!shared_open(c) || !c->site_counts || !c->read_purposes || !flags_open(c) || !c->local) {
        ev_check_free(c);
        return NULL;
    }
    ev_check_block(c, 0);
    return c;
}

void ev_check_free(Checker *c) {
    if (!c)
        return;
    async_close(c);
    sectors_close(&c->loaded);
    last_loads_close(&c->last);
    load_log_close(&c->log);
    shared_close(c);
    free(c->local);
    free(c->read_purposes);
    flags_close(c);
    free(c->site_counts);
    free(c);
}

void ev_check_windows(Checker *c, ev_u64 shared_address, ev_u64 local_address) {
    c->shared_address = shared_address;
    c->local_address = local_address;
}

/* Times have 32 bits: long before they overflow, all records are cleared between two blocks. */
static void restart_time(Checker *c) {
    SharedShadow *s = &c->shared;
    memset(s->written, 0, (ev_u64)s->granules * sizeof(ev_u64));
    memset(s->last_read, 0, (ev_u64)s->granules * sizeof(ev_u32));
    memset(s->reads, 0, (ev_u64)s->granules * c->warps * sizeof(ev_u64));
    memset(c->lane_seen, 0, sizeof c->lane_seen);
    c->now = 0;
}

void ev_check_block(Checker *c, ev_u64 block) {
    settle_writes(c);
    c->block = block;
    c->ordinal = __atomic_fetch_add(&c->launch->begun, 1, __ATOMIC_RELAXED);
    c->number = c->launch->base + block % ((1ull << 26) - 1 - c->launch->base) + 1;
    if (c->now >= 1u << 31)
        restart_time(c);
    c->hops = c->polls = 0;
    order_block(c);
    flags_block(c);
    shared_block(c);
    async_block(c);
    sectors_block(c);
    memset(c->local, 0, (ev_u64)c->warps * 32 * c->local_bytes);
}

static ev_u32 access_shared(Checker *c, const Access *a) {
    count_shared(c, a);
    if (!c->checks)
        return a->mask;
    ev_u32 inside = shared_bounds(c, a);
    if (inside && c->checks & ~EV_BOUNDS) {
        Access part = inside == a->mask ? *a : with_lanes(a, inside);
        shared_access(c, &part);
    }
    return c->checks & EV_BOUNDS ? inside : a->mask;
}

static ev_u32 access_global(Checker *c, const Access *a) {
    count_global(c, a);
    if (!c->checks)
        return a->mask;
    ev_u32 inside = global_bounds(c, a);
    if (inside && c->checks & (EV_RACES | EV_INIT)) {
        Access part = inside == a->mask ? *a : with_lanes(a, inside);
        global_access(c, &part);
    }
    return c->checks & EV_BOUNDS ? inside : a->mask;
}

static ev_u32 access_local(Checker *c, const Access *a) {
    count_local(c, a);
    if (!c->checks)
        return a->mask;
    ev_u32 inside = local_bounds(c, a);
    if (inside && c->checks & EV_INIT) {
        Access part = inside == a->mask ? *a : with_lanes(a, inside);
        local_access(c, &part);
    }
    return c->checks & EV_BOUNDS ? inside : a->mask;
}

/* Generic addresses: lanes may access different spaces; each space is checked with its own lanes. */
static ev_u32 access_generic(Checker *c, const Access *a) {
    u64x32 address = load_lanes(a->address), in_shared = address - c->shared_address, in_local = address - c->local_address;
    ev_u64 frames = (ev_u64)c->warps * 32 * c->local_bytes, offset[32];
    ev_u32 shared = c->shared_address ? a->mask & LANES_WHERE(in_shared < c->shared_bytes) : 0;
    ev_u32 local = c->local_address ? a->mask & ~shared & LANES_WHERE(in_local < frames) : 0;
    ev_u32 rest = a->mask & ~shared & ~local, allowed = 0;
    if (shared) {
        store_lanes(offset, in_shared);
        Access part = make_access(a->warp, shared, a->kind | a->is_poll | a->is_data, a->bytes, offset, a->site);
        allowed |= access_shared(c, &part);
    }
    if (local) {
        for (ev_u32 lane = 0; lane < 32; lane++)
            offset[lane] = in_local[lane] - (ev_u64)(a->warp * 32 + lane) * c->local_bytes;
        Access part = make_access(a->warp, local, a->kind, a->bytes, offset, a->site);
        allowed |= access_local(c, &part);
    }
    if (rest) {
        Access part = with_lanes(a, rest);
        allowed |= access_global(c, &part);
    }
    return allowed;
}

ev_u32 ev_check_access(Checker *c, ev_u32 warp, ev_u32 mask, ev_u32 space, ev_u32 kind, ev_u32 bytes, const ev_u64 *address, ev_u32 site) {
    if (!mask)
        return 0;
    if (__builtin_expect(c->doubtful, 0))
        settle_writes(c);
    c->last_access[warp] = c->now;
    if (kind & EV_POLL)
        c->read_purposes[site] |= POLLS_THERE;
    Access access = make_access(warp, mask, kind, bytes, address, site);
    switch (space) {
    case EV_GLOBAL: return access_global(c, &access);
    case EV_SHARED: return access_shared(c, &access);
    case EV_LOCAL: return access_local(c, &access);
    default: return access_generic(c, &access);
    }
}
