/* The table of findings: one entry for each kind and pair of sites, with its first occurrence and a count. Two warps are preferred to
   two lanes of a warp, because they need a barrier of the block. */
#include "shadow.h"

_Static_assert(sizeof(Finding) == 80 && sizeof(AccessCounts) == 31 * 8 && sizeof(SiteCounts) == 5 * 8,
               "findings.py has the same layout");

static ev_u32 is_same(const Finding *a, const Finding *b) {
    return a->kind == b->kind && a->space == b->space && a->site == b->site && a->other_site == b->other_site &&
           (a->kind != EV_WRITE_AFTER_READ || a->distance == b->distance);
}

/* The check that a kind of finding belongs to: a bit of `checks`. */
static ev_u32 check_of(ev_u32 kind) {
    switch (kind) {
    case EV_SAME_ADDRESS_WRITE: return EV_SAME_ADDRESS;
    case EV_OUT_OF_BOUNDS:
    case EV_MISALIGNED: return EV_BOUNDS;
    case EV_UNINITIALISED: return EV_INIT;
    case EV_ASYNC_READ:
    case EV_ASYNC_WRITE: return EV_ASYNC;
    default: return EV_RACES;
    }
}

/* Whether both threads are of one block, and of one warp or of two. */
static ev_u32 is_of_a_warp(const Finding *f) {
    return f->other_thread >= 0 && f->block == f->other_block && f->thread >> 5 == f->other_thread >> 5;
}
static ev_u32 is_between_warps(const Finding *f) {
    return f->other_thread >= 0 && f->block == f->other_block && f->thread >> 5 != f->other_thread >> 5;
}

OUTLINE void report(Checker *c, Finding found) {
    CheckedLaunch *launch = c->launch;
    if (!(c->checks & check_of(found.kind)))
        return;
    found.block = (ev_i64)c->block;
    ev_u32 hash = (found.kind * 31u + found.space) * 0x9E3779B1u ^ (ev_u32)found.site * 0x85EBCA6Bu ^ (ev_u32)found.other_site * 0xC2B2AE35u;
    hash ^= hash >> 15;
    lock(&launch->lock);
    for (;; hash++) {
        ev_u16 *slot = &launch->slots[hash & (SLOTS - 1)];
        if (*slot && is_same(&launch->findings[*slot - 1], &found)) {
            Finding *known = &launch->findings[*slot - 1];
            found.times += known->times;
            if (is_between_warps(&found) && is_of_a_warp(known))
                *known = found;
            known->times = found.times;
            break;
        }
        if (*slot)
            continue;
        if (launch->found == FINDINGS) {
            launch->dropped += found.times;
            break;
        }
        launch->findings[launch->found] = found;
        *slot = (ev_u16)++launch->found;
        break;
    }
    unlock(&launch->lock);
}

ev_u32 ev_check_findings(CheckedLaunch *launch, const Finding **first) {
    *first = launch->findings;
    return launch->found;
}

ev_u64 ev_check_findings_dropped(CheckedLaunch *launch) { return launch->dropped; }
