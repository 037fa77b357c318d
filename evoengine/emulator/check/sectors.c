/* Which sectors of global memory a block has loaded: what a cache of its own would have to fetch once. */
#include "shadow.h"

enum { GROUP_BITS = 6, FIRST_CAPACITY = 1024, MOST_CAPACITY = 1 << 20 }; /* the most: 2 GiB of memory, 24 MiB of table */

void sectors_block(SectorSet *set) {
    set->epoch++;
    set->used = 0;
}

void sectors_close(SectorSet *set) { free(set->slots); }

/* The slot of a group, or the empty one where it belongs. */
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

ev_u32 sectors_add(SectorSet *set, const ev_u64 *sectors, ev_u32 count) {
    ev_u32 fresh = 0;
    for (ev_u32 i = 0; i < count; i++) {
        if (2 * set->used >= set->capacity && !grow(set))
            return fresh + count - i; /* no room to remember them: they count as new */
        ev_u64 group = sectors[i] >> GROUP_BITS, bit = 1ull << (sectors[i] & ((1 << GROUP_BITS) - 1));
        SectorSlot *slot = find(set, group);
        if (slot->epoch != set->epoch) {
            *slot = (SectorSlot){.group = group, .epoch = set->epoch};
            set->used++;
        }
        fresh += !(slot->bits & bit);
        slot->bits |= bit;
    }
    return fresh;
}
