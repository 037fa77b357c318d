/* How often memory is accessed, and at what price: bank conflicts of shared memory, sectors of global memory.
 *
 * Shared memory has 32 banks of 4 bytes (CUDA C++ Programming Guide, compute capability 5.x and later). A request of 4 bytes a lane
 * or less is served at once; 8 bytes in two halves of a warp, 16 bytes in four quarters. Lanes that want the same word share it.
 * Two of these parts of a load are served as one where neighbours want the same (docs/measurements/h200-rates.json, shared_load*).
 * Global memory moves in sectors of 32 bytes.
 */
#include "shadow.h"

enum { BANK_BYTES = 128, SECTOR_BITS = 5 };

/* Wavefronts for these lanes: the most different units that one bank must give. Units are max(bytes, 4) wide. */
static ev_u32 phase_wavefronts(ev_u32 lanes, const ev_u64 *address, ev_u32 unit_bits) {
    ev_u32 banks = BANK_BYTES >> unit_bits, used = 0, most = 1;
    for (ev_u32 rest = lanes; rest; rest &= rest - 1)
        used |= 1u << ((address[lowest(rest)] >> unit_bits) & (banks - 1));
    if (used && __builtin_popcount(used) == __builtin_popcount(lanes))
        return 1;
    ev_u64 units[32];
    ev_u8 next[32], depth[32] = {0}, head[32], count = 0;
    memset(head, 0xff, sizeof head);
    for (ev_u32 rest = lanes; rest; rest &= rest - 1) {
        ev_u64 unit = address[lowest(rest)] >> unit_bits;
        ev_u32 bank = unit & (banks - 1);
        ev_u8 at = head[bank];
        while (at != 0xff && units[at] != unit)
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

/* Whether every lane wants what the lane `distance` beside it wants. */
static ev_u32 in_pairs(ev_u32 mask, const ev_u64 *address, ev_u32 distance) {
    for (ev_u32 rest = mask; rest; rest &= rest - 1) {
        ev_u32 lane = lowest(rest), other = lane ^ distance;
        if (mask >> other & 1 && address[lane] != address[other])
            return 0;
    }
    return 1;
}

static ev_u32 wavefronts(ev_u32 mask, ev_u32 kind, ev_u32 bytes, const ev_u64 *address) {
    if (bytes <= 4)
        return phase_wavefronts(mask, address, 2);
    ev_u32 sum = 0, lanes = bytes == 8 ? 16 : 8, bits = bytes == 8 ? 3 : 4;
    if ((kind == EV_READ || kind == EV_STRONG_READ) && (in_pairs(mask, address, 1) || in_pairs(mask, address, 2)))
        lanes *= 2;
    for (ev_u32 first = 0; first < 32; first += lanes) {
        ev_u32 part = mask & (ev_u32)(((1ull << lanes) - 1) << first);
        if (part)
            sum += phase_wavefronts(part, address, bits);
    }
    return sum;
}

/* Different sectors that these lanes touch: how many, and which. */
static ev_u32 sectors(ev_u32 mask, ev_u32 bytes, const ev_u64 *address, ev_u64 *known) {
    ev_u32 count = 0;
    for (ev_u32 rest = mask; rest; rest &= rest - 1) {
        ev_u64 first = address[lowest(rest)] >> SECTOR_BITS, last = (address[lowest(rest)] + bytes - 1) >> SECTOR_BITS;
        for (ev_u64 sector = first; sector <= last; sector++) {
            ev_u32 at = count;
            if (count && sector <= known[count - 1]) /* usually addresses grow with the lanes: new ones are found at once */
                while (at && known[at - 1] != sector)
                    at--;
            else
                at = 0;
            if (!at && count < 64)
                known[count++] = sector;
        }
    }
    return count;
}

static void count_site(Checker *c, ev_u32 site, ev_u32 units, ev_u32 bytes) {
    if (site >= c->sites)
        return;
    c->site_counts[site].requests++;
    c->site_counts[site].units += units;
    c->site_counts[site].bytes += bytes;
}

void count_shared(Checker *c, ev_u32 mask, ev_u32 kind, ev_u32 bytes, const ev_u64 *address, ev_u32 site) {
    ev_u32 units = wavefronts(mask, kind, bytes, address), all = bytes * (ev_u32)__builtin_popcount(mask);
    if (kind == EV_READ || kind == EV_STRONG_READ) {
        c->counts.shared_loads++;
        c->counts.shared_load_wavefronts += units;
    } else {
        c->counts.shared_stores += kind != EV_ATOMIC;
        c->counts.shared_atomics += kind == EV_ATOMIC;
        c->counts.shared_store_wavefronts += units;
    }
    c->counts.shared_bytes += all;
    count_site(c, site, units, all);
}

void count_global(Checker *c, ev_u32 mask, ev_u32 kind, ev_u32 bytes, const ev_u64 *address, ev_u32 site) {
    ev_u64 known[64];
    ev_u32 units = sectors(mask, bytes, address, known), all = bytes * (ev_u32)__builtin_popcount(mask);
    if (kind == EV_ATOMIC) {
        c->counts.global_atomics++;
        c->counts.global_atomic_sectors += units;
    } else if (kind == EV_READ || kind == EV_STRONG_READ) {
        c->counts.global_loads++;
        c->counts.global_load_sectors += units;
        c->counts.global_load_bytes += all;
        if (!c->copying)
            c->counts.block_sectors += sectors_add(&c->loaded, known, units);
    } else {
        c->counts.global_stores++;
        c->counts.global_store_sectors += units;
        c->counts.global_store_bytes += all;
    }
    count_site(c, site, units, all);
}

void count_copy(Checker *c, ev_u32 mask, ev_u32 bytes, const ev_u64 *target) {
    c->counts.async_copies++;
    c->counts.async_bytes += bytes * (ev_u32)__builtin_popcount(mask);
    c->counts.async_wavefronts += wavefronts(mask, EV_WRITE, bytes, target);
}

void count_local(Checker *c, ev_u32 mask, ev_u32 kind, ev_u32 bytes, ev_u32 site) {
    ev_u32 all = bytes * (ev_u32)__builtin_popcount(mask);
    c->counts.local_loads += kind == EV_READ || kind == EV_STRONG_READ;
    c->counts.local_stores += kind != EV_READ && kind != EV_STRONG_READ;
    c->counts.local_bytes += all;
    count_site(c, site, 0, all);
}

const AccessCounts *ev_check_counts(Checker *c) {
    sectors_publish(c);
    return &c->counts;
}

const SiteCounts *ev_check_site_counts(Checker *c) { return c->site_counts; }
