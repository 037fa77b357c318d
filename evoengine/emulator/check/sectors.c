/* The sets of sectors of global memory that a block, and each of its warps, has loaded: the misses of an ideal cache of its own.
 *
 * A load waits for L2 where it finds a sector that nothing of its block has loaded long enough before. Warps run one after the other
 * here and side by side on a GPU, so that is settled when the block has ended: the time of a warp is its number of loads so far,
 * and a barrier of the whole block brings all to the same. */
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

enum {
    WARP_BITS = 56,         /* above every sector of an address of 57 bits or less */
    UNDER_WAY = 4,          /* loads of a warp that are under way together, as of a loop that is unrolled: a line that another warp asked
                               for so few loads before is not there yet. Estimate. */
    NEAR_LOADS = 64,        /* sectors, 2 KiB: what was loaded so few before is surely in L1 */
    FIRST_LOADS = 1 << 12,
    MOST_LOADS = 1 << 20,   /* 16 MiB; of further ones each counts as waiting */
};
static const ev_u32 BEGINS = 1u << 31; /* in the site of the first sector of a request */

static ev_u32 grow_log(LoadLog *log) {
    const ev_u32 capacity = log->capacity ? 2 * log->capacity : FIRST_LOADS;
    NewSector *grown = capacity <= MOST_LOADS ? calloc(capacity, sizeof *grown) : NULL;
    if (!grown)
        return 0;
    if (log->used)
        memcpy(grown, log->loads, log->used * sizeof *grown);
    free(log->loads);
    log->loads = grown;
    log->capacity = capacity;
    return 1;
}

void load_log_close(LoadLog *log) { free(log->loads); }

void last_loads_close(LastLoads *last) { free(last->slots); }

/* The slot of a key, or the one where it belongs. */
static LastLoad *last_load(const LastLoads *last, ev_u64 key) {
    ev_u64 at = key * 0x9e3779b97f4a7c15ull >> 32; /* as in find */
    for (;; at++) {
        LastLoad *slot = &last->slots[at & (last->capacity - 1)];
        if (slot->epoch != last->epoch || slot->key == key)
            return slot;
    }
}

static ev_u32 grow_last(LastLoads *last) {
    LastLoads grown = *last;
    grown.capacity = last->capacity ? 2 * last->capacity : FIRST_CAPACITY;
    if (grown.capacity > MOST_CAPACITY || !(grown.slots = calloc(grown.capacity, sizeof *grown.slots)))
        return 0;
    for (ev_u32 i = 0; i < last->capacity; i++)
        if (last->slots[i].epoch == last->epoch)
            *last_load(&grown, last->slots[i].key) = last->slots[i];
    free(last->slots);
    *last = grown;
    return 1;
}

/* Whether a block that has ended has loaded a sector, too. */
static ev_u32 is_of_others(const CheckedLaunch *launch, ev_u64 sector) {
    const SectorSet *all = &launch->loaded;
    if (!all->used)
        return 0;
    const SectorSlot *slot = find(all, sector >> GROUP_BITS);
    return slot->epoch == all->epoch && slot->bits >> (sector & ((1 << GROUP_BITS) - 1)) & 1;
}

/* Whether a warp has not loaded a sector before, all of them if the table is full; counts what it loads again. */
static ev_u32 is_first_load(Checker *c, ev_u32 warp, ev_u64 key, ev_u32 is_common) {
    LastLoads *last = &c->last;
    const ev_u64 time = last->times[warp] += !is_common;
    if (2 * last->used >= last->capacity && !grow_last(last))
        return 1;
    LastLoad *slot = last_load(last, key);
    const ev_u32 is_first = slot->epoch != last->epoch;
    if (is_first) {
        *slot = (LastLoad){.key = key, .epoch = last->epoch};
        last->used++;
    } else if (last->counts && !is_common && time - slot->time > NEAR_LOADS) {
        c->counts.reloads++;
        c->counts.reload_span += time - slot->time;
    }
    slot->time = time;
    return is_first;
}

ev_u32 sectors_of_warp(Checker *c, ev_u32 warp, ev_u32 site, const ev_u64 *sectors, ev_u32 count) {
    LoadLog *log = &c->log;
    const ev_u32 time = ++log->times[warp];
    ev_u64 common = 0; /* a bit for each sector: one access has 64 at most */
    lock(&c->launch->lock);
    for (ev_u32 i = 0; i < count; i++)
        common |= (ev_u64)is_of_others(c->launch, sectors[i]) << i;
    unlock(&c->launch->lock);
    ev_u32 fresh = 0;
    for (ev_u32 i = 0; i < count; i++) {
        const ev_u64 own = sectors[i] | (ev_u64)warp << WARP_BITS;
        if (!is_first_load(c, warp, own, common >> i & 1))
            continue;
        if (log->used == log->capacity && !grow_log(log))
            return !fresh;
        log->loads[log->used++] = (NewSector){.sector = sectors[i], .time = time, .site = site | (fresh ? 0 : BEGINS)};
        fresh = 1;
    }
    return 0;
}

void sectors_meet(Checker *c) {
    LoadLog *log = &c->log;
    ev_u32 latest = 0;
    for (ev_u32 w = 0; w < c->warps; w++)
        latest = log->times[w] > latest ? log->times[w] : latest;
    for (ev_u32 w = 0; w < c->warps; w++)
        log->times[w] = latest + UNDER_WAY;
}

/* The slot of a sector in a table of `mask` + 1 slots, of which unused ones have no time. */
static NewSector *first_load(NewSector *table, ev_u32 mask, ev_u64 sector) {
    ev_u64 at = sector * 0x9e3779b97f4a7c15ull >> 32; /* as in find */
    while (table[at & mask].time && table[at & mask].sector != sector)
        at++;
    return &table[at & mask];
}

/* When the first warp loaded each sector; NULL if there is no memory. */
static NewSector *first_loads(const LoadLog *log, ev_u32 mask) {
    NewSector *table = calloc((ev_u64)mask + 1, sizeof *table);
    for (ev_u32 i = 0; table && i < log->used; i++) {
        NewSector *slot = first_load(table, mask, log->loads[i].sector);
        if (!slot->time || log->loads[i].time < slot->time)
            *slot = log->loads[i];
    }
    return table;
}

void sectors_settle(Checker *c) {
    LoadLog *log = &c->log;
    const ev_u32 mask = 2 * log->capacity - 1;
    NewSector *first = log->used ? first_loads(log, mask) : NULL;
    for (ev_u32 i = 0; i < log->used;) {
        const ev_u32 site = log->loads[i].site & ~BEGINS;
        ev_u32 waits = 0;
        do {
            const NewSector *load = &log->loads[i];
            waits |= !first || load->time < first_load(first, mask, load->sector)->time + UNDER_WAY;
        } while (++i < log->used && !(log->loads[i].site & BEGINS));
        if (site < c->sites)
            c->site_counts[site].fresh += waits;
    }
    free(first);
    log->used = 0;
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
    sectors_settle(c);
    memset(c->log.times, 0, sizeof c->log.times);
    sectors_publish(c);
    c->loaded.epoch++;
    c->loaded.used = 0;
    c->last.epoch++;
    c->last.used = 0;
    memset(c->last.times, 0, sizeof c->last.times);
    c->last.counts = c->launch->loaded.used > 0;
    c->counts.reload_blocks += c->last.counts;
}
