/* The shadow arrays of shared memory: granules are words first, and are split on narrower accesses. */
#include "shadow.h"

static ev_u32 make(SharedShadow *s, ev_u32 warps, ev_u32 bytes, ev_u32 shift) {
    ev_u64 granules = ((ev_u64)bytes + 15 + 16) >> shift; /* the last granule may be partial; 16: the widest access */
    s->shift = shift;
    s->granules = (ev_u32)granules;
    s->state = calloc(granules, 1);
    s->written = calloc(granules, sizeof(ev_u64));
    s->last_read = calloc(granules, sizeof(ev_u32));
    s->reads = calloc(granules * warps, sizeof(ev_u64));
    s->read_sites = calloc(granules * warps, sizeof(ev_u32));
    return s->state && s->written && s->last_read && s->reads && s->read_sites;
}

static void drop(SharedShadow *s) {
    free(s->state);
    free(s->written);
    free(s->last_read);
    free(s->reads);
    free(s->read_sites);
}

ev_u32 shared_open(Checker *c) { return make(&c->shared, c->warps, c->shared_bytes, 2); }

void shared_close(Checker *c) { drop(&c->shared); }

void shared_block(Checker *c) { memset(c->shared.state, 0, c->shared.granules); }

/* Splits every granule, so that accesses of 1 << shift bytes cover whole granules. */
void shared_refine(Checker *c, ev_u32 shift) {
    SharedShadow old = c->shared, new;
    if (!make(&new, c->warps, c->shared_bytes, shift)) {
        drop(&new);
        c->launch->unchecked_bytes += c->shared_bytes; /* narrower accesses are then unchecked */
        return;
    }
    ev_u32 down = old.shift - shift;
    for (ev_u32 g = 0; g < new.granules && g >> down < old.granules; g++) {
        new.state[g] = old.state[g >> down];
        new.written[g] = old.written[g >> down];
        new.last_read[g] = old.last_read[g >> down];
        for (ev_u64 w = 0; w < c->warps; w++) {
            new.reads[w * new.granules + g] = old.reads[w * old.granules + (g >> down)];
            new.read_sites[w * new.granules + g] = old.read_sites[w * old.granules + (g >> down)];
        }
    }
    drop(&old);
    c->shared = new;
}
