/* How many passes the atomic operations on each line of global memory take, over all blocks of a launch: those on one line wait for
 * one another, in the slice of L2 that holds it. Lanes of one instruction share a pass where they are in one sector and their
 * addresses differ; those with the same address count one by one, or, where all of the warp have it, once, because compilers let
 * one lane do it (NVRTC 13.0: REDUX or POPC, then one RED or ATOMG).
 *
 * How many lanes come by each address, if they read it before they change it by an atomic operation, as around a compare-and-swap:
 * here most find what blocks before them have left, on a GPU many find the same and try.
 *
 * And chains of blocks: a block that reads what another one published has one hop more behind it than that one had when it first
 * published there. What a block publishes before it polls (a decoupled look-back) keeps nobody waiting. */
#include "shadow.h"

enum { FIRST_CAPACITY = 256, MOST_CAPACITY = 1 << 18 }; /* the limit: 10 MiB of table; further sectors and flags are not counted */
enum { SECTOR_BITS = 5, LINE_BITS = 7 };
static const ev_u64 OF_LINE = 1ull << 63; /* in the key of a line; that of an address is itself */

void targets_close(TargetTable *table) { free(table->slots); }

/* The slot of an address, or the empty slot where it belongs; no address is 0. */
static TargetSlot *find(const TargetTable *table, ev_u64 address) {
    ev_u64 at = address * 0x9e3779b97f4a7c15ull >> 32; /* as in sectors.c */
    for (;; at++) {
        TargetSlot *slot = &table->slots[at & (table->capacity - 1)];
        if (!slot->address || slot->address == address)
            return slot;
    }
}

static ev_u32 grow(TargetTable *table) {
    TargetTable grown = {.capacity = table->capacity ? 2 * table->capacity : FIRST_CAPACITY, .used = table->used};
    if (grown.capacity > MOST_CAPACITY || !(grown.slots = calloc(grown.capacity, sizeof(TargetSlot))))
        return 0;
    for (ev_u32 i = 0; i < table->capacity; i++)
        if (table->slots[i].address)
            *find(&grown, table->slots[i].address) = table->slots[i];
    free(table->slots);
    *table = grown;
    return 1;
}

/* The slot of an address, a new one if there is none; NULL if the table is full. */
static TargetSlot *slot_of(TargetTable *table, ev_u64 address) {
    if (2 * table->used >= table->capacity && !grow(table))
        return NULL;
    TargetSlot *slot = find(table, address);
    if (!slot->address) {
        *slot = (TargetSlot){.address = address};
        table->used++;
    }
    return slot;
}

/* A slot that the current block has accessed, or NULL. */
static TargetSlot *accessed(Checker *c, ev_u64 key) {
    TargetSlot *slot = slot_of(&c->launch->targets, key);
    if (slot)
        slot->blocks |= c->ordinal < 64 ? 1ull << c->ordinal : 0;
    return slot;
}

/* The lanes that count: one where all of the warp have one address. */
static ev_u32 counted_lanes(const Access *a) { return is_one_place(a) ? a->mask & -a->mask : a->mask; }

/* The lanes of `lanes` with this address, of which the low `bits` do not count. */
static ev_u32 lanes_at(const Access *a, ev_u32 lanes, ev_u64 address, ev_u32 bits) {
    ev_u32 found = 0;
    for (; lanes; lanes &= lanes - 1)
        if (a->address[lowest(lanes)] >> bits == address >> bits)
            found |= lanes & -lanes;
    return found;
}

/* The passes of these lanes, all of one sector. */
static ev_u32 passes_of(const Access *a, ev_u32 lanes) {
    ev_u32 most = 0;
    for (ev_u32 left = lanes; left;) {
        const ev_u32 same = lanes_at(a, left, a->address[lowest(left)], 0), count = (ev_u32)__builtin_popcount(same);
        most = count > most ? count : most;
        left &= ~same;
    }
    return most;
}

void targets_add(Checker *c, const Access *a) {
    lock(&c->launch->lock);
    const ev_u32 lanes = counted_lanes(a);
    for (ev_u32 rest = lanes; rest;) {
        const ev_u64 first = a->address[lowest(rest)];
        const ev_u32 here = lanes_at(a, rest, first, SECTOR_BITS);
        TargetSlot *line = accessed(c, OF_LINE | first >> LINE_BITS);
        if (line)
            line->times += passes_of(a, here);
        rest &= ~here;
    }
    for (ev_u32 rest = lanes; rest && c->launch->visited && c->launch->targets.capacity;) {
        const ev_u64 address = a->address[lowest(rest)];
        TargetSlot *slot = find(&c->launch->targets, address);
        slot->times += slot->address != 0; /* of its lanes one changes it */
        rest &= ~lanes_at(a, rest, address, 0);
    }
    unlock(&c->launch->lock);
}

void targets_visit(Checker *c, const Access *a) {
    lock(&c->launch->lock);
    c->launch->visited = 1;
    for (ev_u32 rest = a->mask; rest;) {
        const ev_u64 first = a->address[lowest(rest)];
        const ev_u32 here = lanes_at(a, rest, first, SECTOR_BITS);
        TargetSlot *line = accessed(c, OF_LINE | first >> LINE_BITS);
        if (line)
            line->visits += passes_of(a, here);
        rest &= ~here;
    }
    for (ev_u32 rest = a->mask; rest;) {
        const ev_u64 address = a->address[lowest(rest)];
        const ev_u32 same = lanes_at(a, rest, address, 0);
        TargetSlot *slot = accessed(c, address);
        if (slot)
            slot->visits += (ev_u32)__builtin_popcount(same);
        rest &= ~same;
    }
    unlock(&c->launch->lock);
}

/* A poll that found nothing yet comes before the write, so its writer is looked up when the block goes on. */
static void look_up_polled(Checker *c) {
    CheckedLaunch *launch = c->launch;
    for (; c->polls && launch->targets.capacity; c->polls--) {
        const TargetSlot *slot = find(&launch->targets, c->polled[c->polls - 1]);
        if (slot->writer && slot->writer != c->ordinal + 1 && slot->hops >= c->hops)
            c->hops = slot->hops + 1;
    }
    launch->hops = c->hops > launch->hops ? c->hops : launch->hops;
}

void targets_poll(Checker *c, const Access *a) {
    lock(&c->launch->lock);
    look_up_polled(c);
    c->polls = 0;
    for (ev_u32 rest = counted_lanes(a); rest; rest &= rest - 1)
        c->polled[c->polls++] = a->address[lowest(rest)];
    unlock(&c->launch->lock);
}

void targets_publish(Checker *c, const Access *a) {
    lock(&c->launch->lock);
    look_up_polled(c);
    for (ev_u32 rest = counted_lanes(a); rest; rest &= rest - 1) {
        TargetSlot *slot = slot_of(&c->launch->targets, a->address[lowest(rest)]);
        if (slot && slot->writer != c->ordinal + 1) {
            slot->writer = c->ordinal + 1;
            slot->hops = c->hops;
        }
    }
    unlock(&c->launch->lock);
}

ev_u64 ev_check_most_hops(CheckedLaunch *launch) { return launch->hops; }

/* Whether at least so many of the first blocks have accessed it. */
static ev_u32 is_common(const TargetSlot *slot, ev_u64 blocks) { return (ev_u64)__builtin_popcountll(slot->blocks) >= blocks; }

ev_u64 ev_check_most_on_line(CheckedLaunch *launch, ev_u64 blocks) {
    ev_u64 most = 0;
    for (ev_u32 i = 0; i < launch->targets.capacity; i++) {
        const TargetSlot *slot = &launch->targets.slots[i];
        if (slot->address & OF_LINE && is_common(slot, blocks) && slot->times > most)
            most = slot->times;
    }
    return most;
}

ev_u64 ev_check_visits(CheckedLaunch *launch, ev_u64 blocks, ev_u32 what) {
    const ev_u64 wanted = what == EV_LINE_VISITS ? OF_LINE : 0;
    ev_u64 most = 0, changes = 0, visits = 0, places = 0;
    for (ev_u32 twice = 0; twice < 2; twice++)
        for (ev_u32 i = 0; i < launch->targets.capacity; i++) {
            const TargetSlot *slot = &launch->targets.slots[i];
            if (!slot->visits || (slot->address & OF_LINE) != wanted || !is_common(slot, blocks))
                continue;
            if (!twice)
                most = slot->visits > most ? slot->visits : most;
            else if (2 * slot->visits >= most)
                changes += slot->times, visits += slot->visits, places++;
        }
    return what == EV_CHANGES ? changes : what == EV_VISITS_OF_ALL ? visits : what == EV_PLACES ? places : most;
}
