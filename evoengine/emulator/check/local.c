/* Local memory: each thread's own frame, with one shadow byte per byte. */
#include "shadow.h"

static void report_local(Checker *c, ev_u32 kind, ev_u32 warp, ev_u32 lane, ev_u32 bytes, ev_u64 offset, ev_i64 distance, ev_u32 site) {
    report(c, (Finding){.kind = kind, .space = EV_LOCAL, .buffer = -1, .bytes = bytes, .offset = (ev_i64)offset, .distance = distance,
                        .thread = (ev_i32)(warp * 32 + lane), .site = (ev_i32)site, .other_thread = -1, .other_site = -1,
                        .other_block = -1, .times = 1});
}

ev_u32 local_bounds(Checker *c, const Access *a) {
    ev_u32 allowed = a->mask, bytes = a->bytes, size = c->local_bytes;
    for (ev_u32 lanes = a->mask; lanes; lanes &= lanes - 1) {
        ev_u32 lane = lowest(lanes);
        ev_i64 offset = (ev_i64)a->address[lane];
        if (offset < 0 || (ev_u64)offset + bytes > size) {
            ev_i64 distance = offset < 0 ? offset : offset + bytes - size;
            report_local(c, EV_OUT_OF_BOUNDS, a->warp, lane, bytes, (ev_u64)offset, distance, a->site);
            allowed &= ~(1u << lane);
        } else if (offset & ((bytes & -bytes) - 1)) {
            report_local(c, EV_MISALIGNED, a->warp, lane, bytes, (ev_u64)offset, 0, a->site);
            allowed &= ~(1u << lane);
        }
    }
    return allowed;
}

void local_access(Checker *c, const Access *a) {
    ev_u32 reads = is_load(a) || a->kind == EV_ATOMIC, bytes = a->bytes;
    for (ev_u32 lanes = a->mask; lanes; lanes &= lanes - 1) {
        ev_u32 lane = lowest(lanes), i = 0;
        ev_u64 offset = a->address[lane];
        ev_u8 *state = c->local + (ev_u64)(a->warp * 32 + lane) * c->local_bytes + offset;
        while (reads && i < bytes && state[i])
            i++;
        if (reads && i < bytes)
            report_local(c, EV_UNINITIALISED, a->warp, lane, bytes, offset + i, 0, a->site);
        if (!is_load(a))
            memset(state, 1, bytes);
    }
}
