/* Checked mode: shadow memory that finds races, accesses out of bounds, uninitialised reads and async copies read too early.
 *
 * A CheckedLaunch holds what the blocks share: the global buffers, their shadow, the findings. Each host thread has a
 * Checker, which checks its blocks one after another. Plain C without libc headers, so that it links into the JIT's process.
 *
 * Masks of lanes: bit i = lane i. Thread numbers are warp * 32 + lane within the block. A `site` is the index of an
 * instruction. */
#ifndef EV_CHECKER_H
#define EV_CHECKER_H

typedef signed char ev_i8;
typedef unsigned char ev_u8;
typedef unsigned short ev_u16;
typedef unsigned int ev_u32;
typedef int ev_i32;
typedef unsigned long long ev_u64;
typedef long long ev_i64;

enum { EV_GLOBAL = 0, EV_SHARED = 1, EV_LOCAL = 2, EV_GENERIC = 3 };

/* Kinds of access. STRONG: volatile, relaxed, acquire, release. They do not race with atomics and one another on global memory;
 * on shared memory they do not if they are of different warps; volatile does not order the lanes of a warp. */
enum { EV_READ = 0, EV_WRITE = 1, EV_ATOMIC = 2, EV_STRONG_READ = 3, EV_STRONG_WRITE = 4 };
/* Flags of a read, added to its kind. DATA: its value controls nothing, so it must be final (analyse/data_registers.py). POLL:
 * it comes before an atomic operation on the same address, so others may write there atomically (analyse/atomic_polls.py). */
enum { EV_DATA = 8, EV_POLL = 16, EV_KINDS = 7 };

/* Bits of `checks`. 0 counts accesses only and lets every lane through. */
enum { EV_RACES = 1, EV_BOUNDS = 2, EV_INIT = 4, EV_ASYNC = 8, EV_SAME_ADDRESS = 16 };
/* With this bit, global addresses are those of real memory, and two threads of a block may write the same value: it does not matter
 * which comes first. Blocks that do so have more work than they should, and are reported. */
enum { EV_VALUES = 32 };

enum {
    EV_READ_AFTER_WRITE = 1,
    EV_WRITE_AFTER_READ = 2,
    EV_WRITE_AFTER_WRITE = 3,
    EV_SAME_ADDRESS_WRITE = 4, /* lanes of one instruction write the same bytes; reported only with EV_SAME_ADDRESS */
    EV_OUT_OF_BOUNDS = 5,
    EV_MISALIGNED = 6,
    EV_UNINITIALISED = 7,
    EV_ASYNC_READ = 8,  /* bytes of a cp.async are read before it was waited for */
    EV_ASYNC_WRITE = 9, /* ... are written */
    EV_DIVERGENT_BARRIER = 10,
    EV_MIXED_BARRIER = 11, /* nothing orders a warp at a barrier behind other warps that have met there: it may meet them instead */
};

enum { EV_NOT_COMMITTED = -1, EV_NOT_WAITED = -2, EV_UNKNOWN = -3 }; /* the group of a copy; no wait since it was committed */

typedef struct {
    ev_u32 kind, space;
    ev_i32 buffer;             /* index given to ev_check_buffer, -1: none */
    ev_u32 bytes;              /* of one lane's access */
    ev_i64 offset;             /* of the first bad byte: in the buffer, shared window or frame; without a buffer: the address */
    /* Out of bounds: bytes beyond the end (> 0) or before the start (< 0). Uninitialised shared memory: bytes of the gap between
       what other_site and end_site wrote, 0: no gap. A write after a read of shared memory: 1 if nothing was written before the read. Async: pending
       groups that the last wait may leave, or one of the names above. */
    ev_i64 distance;
    ev_i32 thread, site;       /* the access that was found */
    ev_i32 other_thread, other_site; /* the earlier access, -1: none */
    ev_i32 end_site, reserved; /* only of a gap */
    ev_i64 block, other_block; /* linear index; other_block -1: none */
    ev_u64 times;              /* lane accesses of this kind at these sites */
} Finding;

typedef struct {
    ev_u64 shared_loads, shared_stores;          /* requests: one per warp and instruction */
    ev_u64 shared_load_wavefronts, shared_store_wavefronts;
    ev_u64 shared_atomics, shared_bytes;
    ev_u64 global_loads, global_stores;          /* requests */
    ev_u64 global_load_sectors, global_store_sectors; /* of 32 bytes, distinct within a request */
    ev_u64 global_atomics, global_atomic_sectors;
    ev_u64 global_load_bytes, global_store_bytes; /* requested by the lanes */
    ev_u64 local_loads, local_stores, local_bytes;
    ev_u64 async_copies, async_bytes;
    ev_u64 async_sectors, async_wavefronts;      /* of sources, included in the loads; of targets, not included elsewhere */
    ev_u64 block_sectors;                        /* distinct, loaded by a block other than by copies, summed over blocks */
    ev_u64 launch_sectors;                       /* distinct, loaded by all of these blocks */
    ev_u64 same_address_writes;                  /* lanes overwritten by another lane of the same instruction */
    ev_u64 barriers;                             /* warps that took part */
    ev_u64 global_load_lines, global_store_lines; /* of 128 bytes, distinct within a request; stores: atomics, too */
    ev_u64 local_lines;                          /* words that the lanes of a request access, by their offset in the frame */
    /* Sectors that a warp loads again after many others, and how many others, leaving aside what a block that has ended loaded, too;
     * of so many blocks, which began when one had ended. Only with `checks` 0. */
    ev_u64 reloads, reload_span, reload_blocks;
} AccessCounts;

typedef struct {
    ev_u64 requests, units, bytes; /* units: wavefronts on shared, sectors on global memory, 0 on local */
    ev_u64 lines;                  /* of 128 bytes of global memory, 0 on shared */
    ev_u64 fresh;                  /* loads of global memory that wait for L2, as sectors.c says; only with `checks` 0 */
} SiteCounts;

typedef struct CheckedLaunch CheckedLaunch;
typedef struct Checker Checker;

/* A launch of `blocks` blocks (linear indices 0 ..). ev_check_launch_next: starts another launch over the same buffers;
 * initialised bytes and findings are kept, all earlier accesses are ordered. */
CheckedLaunch *ev_check_launch_new(ev_u64 blocks);
void ev_check_launch_next(CheckedLaunch *, ev_u64 blocks);
void ev_check_launch_free(CheckedLaunch *);
void ev_check_buffer(CheckedLaunch *, ev_u64 address, ev_u64 bytes, ev_u32 initialised, ev_i32 index);
ev_u32 ev_check_findings(CheckedLaunch *, const Finding **first); /* returns their number; *first: their address, valid until the next access */
ev_u64 ev_check_findings_dropped(CheckedLaunch *);                /* beyond the size of the table */
/* Passes of atomic operations on the line of global memory that has the most, of those that at least so many of the first 64
 * blocks have; only with `checks` 0. */
ev_u64 ev_check_most_on_line(CheckedLaunch *, ev_u64 blocks);
/* Of the addresses of global memory that lanes read before an atomic operation on them, and that at least so many of the first 64
 * blocks read: how many lanes read the one that most do (VISITS); of those that at least half as many read, their number (PLACES),
 * the lanes of all (VISITS_OF_ALL), and the requests that then change them (CHANGES). Of the line that most lanes read so, the
 * passes if all these reads were atomic (LINE_VISITS). Only with `checks` 0. */
enum { EV_VISITS = 0, EV_LINE_VISITS = 1, EV_PLACES = 2, EV_VISITS_OF_ALL = 3, EV_CHANGES = 4 };
ev_u64 ev_check_visits(CheckedLaunch *, ev_u64 blocks, ev_u32 what);
/* The longest chain of blocks of which each read, by a volatile, relaxed or acquire load, what the one before wrote only after it
 * had read so itself: its hops from block to block; only with `checks` 0. */
ev_u64 ev_check_most_hops(CheckedLaunch *);
ev_u64 ev_check_unchecked_bytes(CheckedLaunch *);                 /* of global memory, without race and init checks because the shadow is full */

/* NULL if out of memory. threads: of a block, at most 1024. sites: number of instruction sites. */
Checker *ev_check_new(CheckedLaunch *, ev_u32 shared_bytes, ev_u32 threads, ev_u32 local_bytes_per_thread, ev_u32 checks, ev_u32 sites);
void ev_check_free(Checker *);
const AccessCounts *ev_check_counts(Checker *);
const SiteCounts *ev_check_site_counts(Checker *); /* [sites] */

/* The host addresses of shared and local memory: thread t's frame starts at local_address + t * local_bytes_per_thread. */
void ev_check_windows(Checker *, ev_u64 shared_address, ev_u64 local_address);
void ev_check_block(Checker *, ev_u64 block); /* a block begins: shared and local memory are uninitialised again */

/* Checks one instruction of a warp that accesses `bytes` (of the whole vector) at address[lane] for each lane of mask; returns
 * the lanes that may execute it. Addresses: global: as they are; shared: offset in the window; local: offset in the thread's
 * own frame. */
ev_u32 ev_check_access(Checker *, ev_u32 warp, ev_u32 mask, ev_u32 space, ev_u32 kind, ev_u32 bytes, const ev_u64 *address, ev_u32 site);

void ev_check_performed(Checker *); /* the atomic operation that was checked last has been executed */

void ev_check_warp_sync(Checker *, ev_u32 warp, ev_u32 mask); /* orders these lanes of a warp */
void ev_check_wait(Checker *, ev_u32 warp, ev_u32 site); /* the warp begins to wait at a barrier */
/* Barrier 0..15 is complete: orders the waiting warps, and those that arrived, before what the waiting warps do next. */
void ev_check_barrier(Checker *, ev_u32 barrier, ev_u32 warps_lo, ev_u32 warps_hi);
void ev_check_arrive(Checker *, ev_u32 barrier, ev_u32 warp); /* bar.arrive: the waiting warps are ordered after it, not it after them */
void ev_check_exit(Checker *, ev_u32 warp); /* the warp has exited: for barriers of the whole block it counts as arrived */
void ev_check_block_fence(Checker *, ev_u32 warp, ev_u32 mask); /* the same in the scope of the block: .cta */
void ev_check_fence(Checker *, ev_u32 warp, ev_u32 mask);     /* membar.gl/sys, fence.*.gpu/sys, atom.{release,acq_rel}: not .cta */
void ev_check_divergent_barrier(Checker *, ev_u32 warp, ev_u32 mask, ev_u32 live, ev_u32 site);

/* cp.async of `bytes` to shared_offset[lane]: source_bytes[lane] of them (NULL: all) from global_address[lane], the rest zero;
 * returns the lanes that may execute it. cp.async.wait_all = commit, then wait with pending 0. */
ev_u32 ev_check_async(Checker *, ev_u32 warp, ev_u32 mask, ev_u32 bytes, const ev_u32 *shared_offset, const ev_u64 *global_address,
                      const ev_u32 *source_bytes, ev_u32 site);
void ev_check_async_commit(Checker *, ev_u32 warp, ev_u32 mask);
void ev_check_async_wait(Checker *, ev_u32 warp, ev_u32 mask, ev_u32 pending_groups);

#endif
