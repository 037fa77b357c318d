/* Counts memory accesses and their cost: bank conflicts of shared memory, sectors of global memory.
 *
 * Shared memory has 32 banks of 4 bytes (CUDA C++ Programming Guide, compute capability 5.x and later). A request of up to 4
 * bytes per lane is served at once; 8 bytes in two halves of a warp, 16 bytes in four quarters. Lanes that access the same word
 * share it. Two of these parts of a load are served together if neighbouring lanes access the same words
 * (docs/measurements/h200-rates.json, shared_load*). Atomic operations on one word do not share it, unless all lanes have the
 * same (as in contention.c), and a bank is read and written for each: two wavefronts. Global memory moves in sectors of 32
 * bytes; L1 looks up lines of 128 bytes. In local memory the words of 32 threads with the same offset make a line (CUDA C++
 * Programming Guide, "Local Memory"). */
#include "shadow.h"

enum { BANK_BYTES = 128, SECTOR_BITS = 5, LINE_BITS = 7, WORD_BITS = 2 };

/* Wavefronts of these lanes: the maximum number of distinct units in one bank, or of lanes if they do not share units. Units are
 * max(bytes, 4) wide. */
static ev_u32 phase_wavefronts(ev_u32 lanes, const ev_u64 *address, ev_u32 unit_bits, ev_u32 shares) {
    ev_u32 banks = BANK_BYTES >> unit_bits, most = 1;
    ev_u64 units[32];
    ev_u8 next[32], depth[32] = {0}, head[32], count = 0;
    memset(head, 0xff, sizeof head);
    for (ev_u32 rest = lanes; rest; rest &= rest - 1) {
        ev_u64 unit = address[lowest(rest)] >> unit_bits;
        ev_u32 bank = unit & (banks - 1);
        ev_u8 at = head[bank];
        while (at != 0xff && !(shares && units[at] == unit))
            at = next[at];
        if (at != 0xff)
            continue;
        units[count] = unit;
        next[count] = head[bank];
        head[bank] = count++;
        if (++depth[bank] > most)
            most = depth[bank];
    }
    return most;
}

/* Whether lanes access the same units in pairs: lanes 2i and 2i + 1, or in each group of four i and i + 2. */
static ev_u32 in_pairs(const Access *a) {
    u64x32 here = load_lanes(a->address);
    u64x32 next = __builtin_shufflevector(here, here, 1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10, 13, 12, 15, 14, 17, 16, 19, 18, 21, 20, 23,
                                          22, 25, 24, 27, 26, 29, 28, 31, 30);
    u64x32 second = __builtin_shufflevector(here, here, 2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13, 18, 19, 16, 17, 22, 23,
                                            20, 21, 26, 27, 24, 25, 30, 31, 28, 29);
    const ev_u32 mask = a->mask;
    return !(LANES_WHERE(here != next) & mask & ((mask & 0x55555555) << 1 | (mask >> 1 & 0x55555555))) ||
           !(LANES_WHERE(here != second) & mask & ((mask & 0x33333333) << 2 | (mask >> 2 & 0x33333333)));
}

/* Whether the lanes that are served together all access distinct banks. */
static ev_u32 has_own_banks(const Access *a, ev_u32 unit_bits) {
    const ev_u32 banks = BANK_BYTES >> unit_bits;
    u32x32 unit = __builtin_convertvector(load_lanes(a->address) >> unit_bits, u32x32);
    u32x32 place = (unit & (banks - 1)) | (LANE & -banks);
    return (ev_u32)__builtin_popcount(__builtin_reduce_or(only(a->mask, 1u << place))) == (ev_u32)__builtin_popcount(a->mask);
}

static ev_u32 wavefronts(const Access *a) {
    const ev_u32 unit_bits = a->bytes <= 4 ? 2 : a->bytes == 8 ? 3 : 4, banks = BANK_BYTES >> unit_bits;
    const ev_u32 lanes = a->bytes > 4 && is_load(a) && in_pairs(a) ? 2 * banks : banks;
    if (a->bytes <= 4 && !a->mask)
        return 1;
    const ev_u32 simple = is_one_place(a) || (is_one_run(a) && a->bytes <= 16) || (lanes == banks && has_own_banks(a, unit_bits));
    ev_u32 sum = 0;
    for (ev_u32 first = 0; first < 32; first += lanes) {
        ev_u32 part = a->mask & (ev_u32)(((1ull << lanes) - 1) << first);
        if (part)
            sum += simple ? 1 : phase_wavefronts(part, a->address, unit_bits, a->kind != EV_ATOMIC);
    }
    return a->kind == EV_ATOMIC ? 2 * sum : sum;
}

INLINE ev_u32 is_among(const ev_u64 *known, ev_u32 count, ev_u64 sector) {
    while (count && known[count - 1] != sector)
        count--;
    return count;
}

/* The distinct sectors that these lanes access: returns their number and stores them. */
static ev_u32 sectors(const Access *a, ev_u64 *known) {
    ev_u32 count = 0;
    ev_u64 greatest = 0;
    for (ev_u32 rest = a->mask; rest;) {
        Run run = run_from(a, lowest(rest));
        ev_u64 first = a->address[run.lane] >> SECTOR_BITS, last = (a->address[run.lane] + run_bytes(a, run) - 1) >> SECTOR_BITS;
        for (ev_u64 sector = first; sector <= last; sector++) {
            if (count && sector <= greatest && is_among(known, count, sector)) /* usually addresses grow with the lanes */
                continue;
            greatest = sector > greatest ? sector : greatest;
            if (count < 64)
                known[count++] = sector;
        }
        rest = lanes_behind(rest, run);
    }
    return count;
}

/* The number of distinct lines of these sectors. */
static ev_u32 lines_of(const ev_u64 *sector, ev_u32 sectors) {
    ev_u64 known[64];
    ev_u32 count = 0;
    for (ev_u32 i = 0; i < sectors && i < 64; i++) {
        ev_u64 line = sector[i] >> (LINE_BITS - SECTOR_BITS);
        if (!(count && known[count - 1] == line) && !is_among(known, count, line))
            known[count++] = line;
    }
    return count;
}

/* The number of distinct words, by their offsets in the frame. */
static ev_u32 local_lines(const Access *a) {
    const ev_u32 words = a->bytes > 4 ? a->bytes >> WORD_BITS : 1;
    ev_u64 known[32];
    ev_u32 count = 0;
    for (ev_u32 rest = a->mask; rest; rest &= rest - 1) {
        ev_u64 word = a->address[lowest(rest)] >> WORD_BITS;
        if (!is_among(known, count, word))
            known[count++] = word;
    }
    return count * words;
}

INLINE ev_u32 asked_bytes(const Access *a) { return a->bytes * (ev_u32)__builtin_popcount(a->mask); }

static void count_site(Checker *c, ev_u32 site, ev_u32 units, ev_u32 bytes, ev_u32 lines, ev_u32 fresh) {
    if (site >= c->sites)
        return;
    SiteCounts *counts = &c->site_counts[site];
    counts->requests++;
    counts->units += units;
    counts->bytes += bytes;
    counts->lines += lines;
    counts->fresh += fresh > 0;
}

void count_shared(Checker *c, const Access *a) {
    ev_u32 units = wavefronts(a), all = asked_bytes(a);
    if (is_load(a)) {
        c->counts.shared_loads++;
        c->counts.shared_load_wavefronts += units;
    } else {
        c->counts.shared_stores += a->kind != EV_ATOMIC;
        c->counts.shared_atomics += a->kind == EV_ATOMIC;
        c->counts.shared_store_wavefronts += units;
    }
    c->counts.shared_bytes += all;
    count_site(c, a->site, units, all, 0, 0);
}

void count_global(Checker *c, const Access *a) {
    ev_u64 known[64];
    ev_u32 units = sectors(a, known), lines = lines_of(known, units), fresh = 0, all = asked_bytes(a);
    if (a->kind == EV_ATOMIC) {
        c->counts.global_atomics++;
        c->counts.global_atomic_sectors += units;
        c->counts.global_store_lines += lines;
        if (!c->checks) {
            targets_add(c, a);
            targets_publish(c, a);
        }
    } else if (is_load(a)) {
        c->counts.global_loads++;
        c->counts.global_load_sectors += units;
        c->counts.global_load_bytes += all;
        if (a->kind == EV_STRONG_READ && !a->is_poll && !c->checks)
            targets_poll(c, a);
        if (a->is_poll && !c->checks)
            targets_visit(c, a);
        if (!c->copying) {
            c->counts.global_load_lines += lines;
            c->counts.block_sectors += sectors_add(&c->loaded, known, units);
            fresh = c->checks ? 0 : sectors_of_warp(c, a->warp, a->site, known, units);
        }
    } else {
        if (a->kind == EV_STRONG_WRITE && !c->checks)
            targets_publish(c, a);
        c->counts.global_stores++;
        c->counts.global_store_sectors += units;
        c->counts.global_store_bytes += all;
        c->counts.global_store_lines += lines;
    }
    count_site(c, a->site, units, all, lines, fresh);
}

void count_copy(Checker *c, const Access *targets) {
    c->counts.async_copies++;
    c->counts.async_bytes += asked_bytes(targets);
    c->counts.async_wavefronts += wavefronts(targets);
}

void count_local(Checker *c, const Access *a) {
    c->counts.local_loads += is_load(a);
    c->counts.local_stores += !is_load(a);
    c->counts.local_bytes += asked_bytes(a);
    ev_u32 lines = local_lines(a);
    c->counts.local_lines += lines;
    count_site(c, a->site, 0, asked_bytes(a), lines, 0);
}

const AccessCounts *ev_check_counts(Checker *c) {
    sectors_publish(c);
    return &c->counts;
}

const SiteCounts *ev_check_site_counts(Checker *c) {
    sectors_settle(c);
    return c->site_counts;
}
