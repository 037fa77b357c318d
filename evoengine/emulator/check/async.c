/* cp.async: the pending copies of each thread. */
#include "shadow.h"

static AsyncCopy *next_copy(AsyncQueue *queue) {
    if (queue->count == queue->capacity) {
        ev_u32 capacity = queue->capacity ? 2 * queue->capacity : 16;
        AsyncCopy *grown = malloc(capacity * sizeof *grown);
        if (!grown)
            return NULL;
        if (queue->count)
            memcpy(grown, queue->copies, queue->count * sizeof *grown);
        free(queue->copies);
        queue->copies = grown;
        queue->capacity = capacity;
    }
    return &queue->copies[queue->count++];
}

void async_close(Checker *c) {
    for (ev_u32 w = 0; w < c->warps; w++)
        free(c->queues[w].copies);
}

void async_block(Checker *c) {
    for (ev_u32 w = 0; w < c->warps; w++) {
        c->queues[w].count = 0;
        memset(c->queues[w].committed, 0, sizeof c->queues[w].committed);
        memset(c->queues[w].waited, 0, sizeof c->queues[w].waited);
    }
}

/* Checks the reads of the sources, for lanes of one size at a time. */
static ev_u32 check_sources(Checker *c, ev_u32 warp, ev_u32 mask, ev_u32 bytes, const ev_u64 *address, const ev_u32 *source_bytes, ev_u32 site) {
    if (!source_bytes)
        return ev_check_access(c, warp, mask, EV_GLOBAL, EV_READ, bytes, address, site);
    ev_u32 allowed = mask;
    for (ev_u32 rest = mask; rest;) {
        ev_u32 size = source_bytes[lowest(rest)], same = 0;
        for (ev_u32 lanes = rest; lanes; lanes &= lanes - 1)
            if (source_bytes[lowest(lanes)] == size)
                same |= 1u << lowest(lanes);
        if (size)
            allowed &= ~same | ev_check_access(c, warp, same, EV_GLOBAL, EV_READ, size < bytes ? size : bytes, address, site);
        rest &= ~same;
    }
    return allowed;
}

ev_u32 ev_check_async(Checker *c, ev_u32 warp, ev_u32 mask, ev_u32 bytes, const ev_u32 *shared_offset, const ev_u64 *global_address,
                      const ev_u32 *source_bytes, ev_u32 site) {
    if (!mask)
        return 0;
    c->last_access[warp] = c->now;
    ev_u64 target[32] = {0};
    for (ev_u32 lanes = mask; lanes; lanes &= lanes - 1)
        target[lowest(lanes)] = shared_offset[lowest(lanes)];
    ev_u64 loaded = c->counts.global_load_sectors;
    c->copying = 1;
    mask = check_sources(c, warp, mask, bytes, global_address, source_bytes, site);
    c->copying = 0;
    c->counts.async_sectors += c->counts.global_load_sectors - loaded;
    Access targets = make_access(warp, mask, EV_WRITE, bytes, target, site);
    count_copy(c, &targets);
    if (c->checks & EV_BOUNDS) {
        mask = shared_bounds(c, &targets);
        targets = with_lanes(&targets, mask);
    }
    if (!(c->checks & (EV_RACES | EV_INIT | EV_ASYNC)) || !mask)
        return mask;
    shared_launch_copy(c, &targets);
    AsyncQueue *queue = &c->queues[warp];
    AsyncCopy *copy = next_copy(queue);
    if (!copy)
        return mask;
    copy->mask = mask;
    copy->site = site;
    copy->bytes = bytes;
    memcpy(copy->offset, shared_offset, sizeof copy->offset);
    memcpy(copy->group, queue->committed, sizeof copy->group);
    return mask;
}

ev_i64 async_pending(const Checker *c, ev_u32 thread, ev_u32 offset) {
    const AsyncQueue *queue = &c->queues[thread >> 5];
    const ev_u32 lane = thread & 31;
    for (ev_u32 i = queue->count; i--;) {
        const AsyncCopy *copy = &queue->copies[i];
        if (!(copy->mask >> lane & 1) || offset - copy->offset[lane] >= copy->bytes)
            continue;
        if (copy->group[lane] >= queue->committed[lane])
            return EV_NOT_COMMITTED;
        if (copy->group[lane] >= queue->waited[lane])
            return EV_NOT_WAITED;
        return queue->waited[lane] - copy->group[lane] - 1;
    }
    return EV_UNKNOWN;
}

void ev_check_async_commit(Checker *c, ev_u32 warp, ev_u32 mask) {
    for (ev_u32 lanes = mask; lanes; lanes &= lanes - 1)
        c->queues[warp].committed[lowest(lanes)]++;
}

void ev_check_async_wait(Checker *c, ev_u32 warp, ev_u32 mask, ev_u32 pending_groups) {
    AsyncQueue *queue = &c->queues[warp];
    ev_u32 kept = 0;
    for (ev_u32 lanes = mask; lanes; lanes &= lanes - 1)
        queue->waited[lowest(lanes)] = queue->committed[lowest(lanes)];
    c->last_access[warp] = c->now; /* copies complete as writes at the current time */
    for (ev_u32 i = 0; i < queue->count; i++) {
        AsyncCopy *copy = &queue->copies[i];
        for (ev_u32 lanes = copy->mask & mask; lanes; lanes &= lanes - 1) {
            ev_u32 lane = lowest(lanes);
            if (copy->group[lane] + (ev_u64)pending_groups >= queue->committed[lane])
                continue;
            shared_land_copy(c, warp * 32 + lane, copy->offset[lane], copy->bytes, copy->site);
            copy->mask &= ~(1u << lane);
        }
        if (copy->mask) {
            if (kept != i)
                queue->copies[kept] = *copy;
            kept++;
        }
    }
    queue->count = kept;
}
