/* The sets of sectors of global memory that a block, and each of its warps, has loaded: the misses of an ideal cache of its own. */
#include "shadow.h"

enum { GROUP_BITS = 6, FIRST_CAPACITY = 1024, MOST_CAPACITY = 1 << 20 }; /* the limit: 2 GiB of memory, 24 MiB of table */

void sectors_close(SectorSet *set) { free(set->slots); }

/* The slot of a group, or the empty slot where it belongs. */
static SectorSlot *find(const SectorSet *set, ev_u64 group) {
    ev_u64 at = group * 0x9e3779b97f4a7c15ull >> 32; /* Knuth, The Art of Computer Programming 3, 6.4: multiplicative hashing */
    for (;; at++) {
        SectorSlot *slot = &set->slots[at & (set->capacity - 1)];
        if (slot->epoch != set->epoch || slot->group == group)
            return slot;
    }
}

static ev_u32 grow(SectorSet *set) {
    SectorSet grown = {.capacity = set->capacity ? 2 * set->capacity : FIRST_CAPACITY, .used = set->used, .epoch = set->epoch};
    if (grown.capacity > MOST_CAPACITY || !(grown.slots = calloc(grown.capacity, sizeof(SectorSlot))))
        return 0;
    for (ev_u32 i = 0; i < set->capacity; i++)
        if (set->slots[i].epoch == set->epoch)
            *find(&grown, set->slots[i].group) = set->slots[i];
    free(set->slots);
    *set = grown;
    return 1;
}

/* Marks these sectors of a group; returns how many are new, all of them if the table is full. */
static ev_u32 mark(SectorSet *set, ev_u64 group, ev_u64 bits) {
    if (2 * set->used >= set->capacity && !grow(set))
        return (ev_u32)__builtin_popcountll(bits);
    SectorSlot *slot = find(set, group);
    if (slot->epoch != set->epoch) {
        *slot = (SectorSlot){.group = group, .epoch = set->epoch};
        set->used++;
    }
    ev_u32 fresh = (ev_u32)__builtin_popcountll(bits & ~slot->bits);
    slot->bits |= bits;
    return fresh;
}

ev_u32 sectors_add(SectorSet *set, const ev_u64 *sectors, ev_u32 count) {
    ev_u32 fresh = 0;
    for (ev_u32 i = 0; i < count;) {
        ev_u64 group = sectors[i] >> GROUP_BITS, bits = 0;
        for (; i < count && sectors[i] >> GROUP_BITS == group; i++)
            bits |= 1ull << (sectors[i] & ((1 << GROUP_BITS) - 1));
        fresh += mark(set, group, bits);
    }
    return fresh;
}

ev_u32 sectors_of_warp(Checker *c, ev_u32 warp, const ev_u64 *sectors, ev_u32 count) {
    enum { WARP_BITS = 56 }; /* above every sector of an address of 57 bits or less */
    ev_u64 own[64];
    for (ev_u32 i = 0; i < count; i++)
        own[i] = sectors[i] | (ev_u64)warp << WARP_BITS;
    return sectors_add(&c->loaded_by_warps, own, count);
}

void sectors_publish(Checker *c) {
    SectorSet *all = &c->launch->loaded, *own = &c->loaded;
    if (!own->used)
        return;
    lock(&c->launch->lock);
    all->epoch = 1; /* unused slots have 0 */
    for (ev_u32 i = 0; i < own->capacity; i++)
        if (own->slots[i].epoch == own->epoch)
            c->counts.launch_sectors += mark(all, own->slots[i].group, own->slots[i].bits);
    unlock(&c->launch->lock);
}

void sectors_block(Checker *c) {
    sectors_publish(c);
    c->loaded.epoch++;
    c->loaded.used = 0;
    c->loaded_by_warps.epoch++;
    c->loaded_by_warps.used = 0;
}
