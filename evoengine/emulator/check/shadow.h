/* The checker's state: shadow memory, and the happens-before order of accesses.
 *
 * Order. `now` counts every synchronisation that this checker sees. An access of warp v at time r comes before what warp w
 * does iff r < seen[w][v]: w has synchronised, directly or transitively, with v after r. Within a warp, lane m's access comes
 * before lane l's iff r < full_sync[w] or r < lane_seen[w][l][m]. Of lanes of v that have published more than the whole warp has
 * (flags.c), what they do also comes before if r < seen_by_lanes[w][v]. horizon[w] is below all of these, so that one comparison
 * decides the usual case. `now` is never reset, not even for a new block: old records are older than everything. */
#ifndef EV_SHADOW_H
#define EV_SHADOW_H

#include "access.h"

#define MAX_WARPS 32 /* 1024 threads a block, the limit of every CUDA device */
#define BARRIERS 16  /* PTX ISA, bar: barriers 0 to 15 */
#define NULL ((void *)0)
#define OUTLINE __attribute__((noinline))

void *malloc(unsigned long);
void *calloc(unsigned long, unsigned long);
void free(void *);
void *memset(void *, int, unsigned long);
void *memcpy(void *, const void *, unsigned long);

enum { INITIALISED = 1, IN_FLIGHT = 2, BY_ATOMIC = 4, IS_FLAG = 8 }; /* state of a granule; IS_FLAG: by a strong write */
enum { POLLS_THERE = 1, READS_FLAGS = 2 };                               /* of a site that reads */
enum { FINDINGS = 256, SLOTS = 1024 };
enum { DOUBTFUL = 64, WIDEST_ACCESS = 32 };

/* Shadow of shared memory: parallel arrays over granules of 1 << shift bytes. They start as words; the first narrower access
   refines them. */
typedef struct {
    ev_u32 shift, granules;
    ev_u8 *state;
    ev_u64 *written;   /* time << 32 | thread << 21 | site; site is cut to 21 bits */
    ev_u32 *last_read; /* the latest of all reads */
    ev_u64 *reads;     /* [warps][granules] time << 32 | mask of lanes */
    ev_u32 *read_sites; /* [warps][granules] */
} SharedShadow;

/* Shadow of 4 KiB of a global buffer. Records: block number << 38 | time within the block << 10 | thread; 0: none. */
typedef struct {
    ev_u32 lock, shift;
    ev_u64 *written, *read_a, *read_b; /* two readers that are unordered with one another */
    ev_u32 *write_sites, *a_sites, *b_sites;
    ev_u64 *others; /* the latest atomic write by another block than that of `written`; NULL: none on this page */
    ev_u32 *other_sites;
    ev_u8 *state;
} Page;

/* ALIGNED: pages start at a multiple of it, so that no access within a buffer crosses a page. */
enum { PAGE_BITS = 12, PAGE_BYTES = 1 << PAGE_BITS, ALIGNED = 32 };
extern Page unchecked_page; /* stands for pages beyond the memory budget */

typedef struct {
    ev_u64 address, bytes;
    ev_i32 index;
    ev_u32 initialised;
    Page **pages;
} Buffer;

/* Hash table of loaded sectors of global memory, 64 per slot. Slots with an earlier `epoch` are empty. */
typedef struct {
    ev_u64 group, epoch, bits;
} SectorSlot;

typedef struct {
    SectorSlot *slots;
    ev_u32 capacity, used; /* capacity: a power of two, or 0 */
    ev_u64 epoch;
} SectorSet;

/* When a warp of the current block loaded each sector last; only if accesses are counted and nothing is checked. */
typedef struct {
    ev_u64 key, epoch; /* key: the sector, and the warp above it */
    ev_u64 time;       /* sectors that the warp had loaded, again or not */
} LastLoad;

typedef struct {
    LastLoad *slots;
    ev_u32 capacity, used; /* capacity: a power of two, or 0 */
    ev_u64 epoch;
    ev_u64 times[MAX_WARPS];
    ev_u32 counts; /* whether a block had ended when the current one began: else nothing is known of what they have in common */
} LastLoads;

/* A sector that a warp has loaded for the first time. */
typedef struct {
    ev_u64 sector;
    ev_u32 time, site;
} NewSector;

/* Those of the current block; only if accesses are counted and nothing is checked. */
typedef struct {
    NewSector *loads;
    ev_u32 capacity, used;
    ev_u32 times[MAX_WARPS]; /* loads of each warp so far */
} LoadLog;

/* Hash table of the addresses of global memory that blocks write atomically, or as flags. */
typedef struct {
    ev_u64 address, blocks; /* address: or a line, with a mark (contention.c); blocks: a bit for each of the first 64 that run */
    ev_u64 times, visits;   /* passes of atomic operations on a line, or requests with one on an address; passes or lanes that read it
                               before */
    ev_u64 writer; /* ordinal + 1 of the block that wrote there last, 0: none yet */
    ev_u32 hops;   /* of that block when it first wrote there */
} TargetSlot;

typedef struct {
    TargetSlot *slots;
    ev_u32 capacity, used; /* capacity: a power of two, or 0 */
} TargetTable;

struct CheckedLaunch {
    ev_u64 begun; /* blocks */
    TargetTable targets; /* only if accesses are counted and nothing is checked; guarded by `lock` */
    ev_u32 hops; /* of the block with the most; as `targets` */
    ev_u32 visited; /* whether anything reads before an atomic operation; as `targets` */
    SectorSet loaded; /* by finished blocks; guarded by `lock` */
    Buffer *buffers; /* sorted by address */
    ev_u32 count, capacity;
    ev_u64 blocks, base; /* block numbers in records: base + linear index + 1 */
    ev_u32 *released;    /* [released_mask + 1] by block number: time that its last fence before an atomic covers */
    ev_u64 released_mask;
    ev_u64 shadow_bytes, unchecked_bytes;
    ev_u32 lock, found;
    ev_u32 performing; /* lock: an atomic operation on global memory is recorded and not yet executed */
    Finding findings[FINDINGS];
    ev_u16 slots[SLOTS]; /* hash of kind and sites -> finding + 1 */
    ev_u64 dropped;
};

typedef struct {
    ev_u32 mask, site, bytes;
    ev_u32 offset[32];
    ev_u32 group[32];
} AsyncCopy;

typedef struct {
    AsyncCopy *copies;
    ev_u32 count, capacity;
    ev_u32 committed[32]; /* number of groups that each lane has committed */
    ev_u32 waited[32];    /* the same, when the lane last waited */
} AsyncQueue;

/* A write that races with an earlier one unless it leaves these bytes as they are. */
typedef struct {
    Finding finding;
    ev_u64 address;
    ev_u32 bytes;
    ev_u8 before[WIDEST_ACCESS];
} DoubtfulWrite;

enum { POLLS = 256 };

/* A word of global memory that a block has read by a volatile, relaxed or acquire load. */
typedef struct {
    ev_u64 word, number; /* address / 4; number of the block in records */
} Poll;

/* Warps that have met at a barrier. */
typedef struct {
    ev_u32 waited, arrived, time, site; /* masks of those that waited and those that did not; site of the first that waited */
} Meeting;

struct Checker {
    CheckedLaunch *launch;
    ev_u32 checks, warps, threads, shared_bytes, local_bytes, sites;
    ev_u64 ordinal; /* of the block among those that run */
    ev_u32 hops;    /* blocks that had to publish, one after the other, before this one could go on */
    ev_u32 polls;   /* number of addresses below: those of the last poll, whose writers are not looked up yet */
    ev_u64 polled[32];
    ev_u64 block, number; /* number: the block's number in records of global memory */
    ev_u64 shared_address, local_address;
    ev_u32 now, block_start;
    Poll polls_of_block[POLLS]; /* by a hash of the word: a later one takes the place of an earlier one */
    ev_u32 performing; /* whether this one holds the lock of that name */
    ev_u32 fenced, acquired; /* time of the block's last fence; whether it has done an atomic on global memory */
    ev_u32 whole[MAX_WARPS]; /* lanes that have a thread */
    ev_u32 full_sync[MAX_WARPS], others_seen[MAX_WARPS], horizon[MAX_WARPS];
    ev_u32 exited;           /* warps that have exited */
    ev_u32 last_access[MAX_WARPS];
    ev_u32 partial[MAX_WARPS]; /* whether a part of its lanes has synchronised since full_sync */
    ev_u32 seen[MAX_WARPS][MAX_WARPS];
    ev_u32 seen_by_lanes[MAX_WARPS][MAX_WARPS], seen_lanes[MAX_WARPS][MAX_WARPS];
    /* of each warp's last fence: its time, and what the warp had seen by then */
    ev_u32 fence_time[MAX_WARPS], fenced_seen[MAX_WARPS][MAX_WARPS];
    ev_u32 fenced_by_lanes[MAX_WARPS][MAX_WARPS], fenced_lanes[MAX_WARPS][MAX_WARPS];
    ev_u16 *flag_numbers; /* [words of shared memory] number of the flag there, from 1 */
    struct Flag *flags;
    ev_u32 flag_count;
    ev_u32 lane_seen[MAX_WARPS][32][32];
    ev_u32 arrivals[BARRIERS][MAX_WARPS], arrived[BARRIERS]; /* arrived: the warps */
    Meeting met[BARRIERS];       /* the last one at each barrier */
    ev_u32 wait_site[MAX_WARPS]; /* of the barrier at which the warp waits, or waited last */
    SharedShadow shared;
    ev_u8 *local; /* [threads][local_bytes] initialised */
    AsyncQueue queues[MAX_WARPS];
    ev_u32 copying; /* the current access is that of an async copy to its source */
    SectorSet loaded; /* by the current block */
    LoadLog log;
    LastLoads last;
    AccessCounts counts;
    ev_u32 doubtful; /* number of writes below, all of one instruction that has not been executed yet */
    DoubtfulWrite writes[DOUBTFUL];
    SiteCounts *site_counts;
    ev_u8 *read_purposes; /* [sites] whether its reads only poll before an atomic operation, or read flags */
};

INLINE void lock(ev_u32 *word) {
    while (__atomic_exchange_n(word, 1, __ATOMIC_ACQUIRE))
        ;
}

INLINE void unlock(ev_u32 *word) { __atomic_store_n(word, 0, __ATOMIC_RELEASE); }

/* Whether an access of `thread` at `time` in this block is ordered before the current access of lane `lane` of `warp`. */
INLINE ev_u32 is_ordered(const Checker *c, ev_u32 warp, ev_u32 lane, ev_u32 thread, ev_u32 time) {
    ev_u32 other = thread >> 5, other_lane = thread & 31;
    if (other != warp)
        return time < c->seen[warp][other] || (time < c->seen_by_lanes[warp][other] && c->seen_lanes[warp][other] >> other_lane & 1);
    return other_lane == lane || time < c->full_sync[warp] || time < c->lane_seen[warp][lane][other_lane];
}

INLINE ev_u32 holds(const Buffer *buffer, ev_u64 address, ev_u64 bytes) {
    return buffer && address >= buffer->address && bytes <= buffer->bytes && address - buffer->address <= buffer->bytes - bytes;
}

/* launch.c: the last buffer that begins at or before `address`; the first buffer if none does; NULL without buffers. */
const Buffer *find_buffer(const CheckedLaunch *, ev_u64 address);

INLINE const Buffer *holder(const CheckedLaunch *launch, const Buffer *hint, ev_u64 address, ev_u64 bytes) {
    return holds(hint, address, bytes) ? hint : find_buffer(launch, address);
}

/* order.c */
void order_block(Checker *);
void move_horizon(Checker *, ev_u32 warp);
/* flags.c */
ev_u32 flags_open(Checker *);
void flags_close(Checker *);
void flags_block(Checker *);
void flags_written(Checker *, const Access *);
void flags_read(Checker *, const Access *);
/* findings.c */
void report(Checker *, Finding);
/* values.c */
void doubt_write(Checker *, Finding, ev_u64 address, ev_u32 bytes); /* reports it later if the write changes one of these bytes */
void settle_writes(Checker *);                                     /* the doubtful writes have been executed */
/* counts.c */
void count_shared(Checker *, const Access *);
void count_global(Checker *, const Access *);
void count_local(Checker *, const Access *);
void count_copy(Checker *, const Access *targets);
/* sectors.c */
void sectors_publish(Checker *); /* adds the sectors of the block to those of the launch */
void sectors_block(Checker *);   /* the same, then clears them for the next block */
ev_u32 sectors_add(SectorSet *, const ev_u64 *sectors, ev_u32 count); /* returns how many of them are new to the block */
ev_u32 sectors_of_warp(Checker *, ev_u32 warp, ev_u32 site, const ev_u64 *sectors, ev_u32 count); /* a load; 1 if no room to settle later */
void sectors_meet(Checker *);   /* all warps of the block have met at a barrier */
void sectors_settle(Checker *); /* counts which of the loads so far had to wait for L2 */
void last_loads_close(LastLoads *);
void load_log_close(LoadLog *);
void sectors_close(SectorSet *);
/* contention.c */
void targets_add(Checker *, const Access *); /* counts an atomic operation on global memory */
void targets_visit(Checker *, const Access *); /* a read before an atomic operation */
void targets_publish(Checker *, const Access *); /* a write that others may wait for */
void targets_poll(Checker *, const Access *);    /* a read that may wait for others */
void targets_close(TargetTable *);
/* granules.c */
ev_u32 shared_open(Checker *);
void shared_close(Checker *);
void shared_block(Checker *);
void shared_refine(Checker *, ev_u32 shift);
/* shared.c; *_bounds: the lanes that are in bounds and aligned */
ev_u32 shared_bounds(Checker *, const Access *);
void shared_access(Checker *, const Access *);
void shared_launch_copy(Checker *, const Access *);
void shared_land_copy(Checker *, ev_u32 thread, ev_u32 offset, ev_u32 bytes, ev_u32 site);
/* launch.c, global.c */
Page *find_page(CheckedLaunch *, const Buffer *, ev_u64 address, ev_u32 shift); /* created with granules of 1 << shift if there is none */
void refine_page(CheckedLaunch *, Page *, ev_u32 shift);                         /* its lock is held */
ev_u32 page_has_others(Page *);                                                  /* its lock is held; 0: no memory */
ev_u32 global_bounds(Checker *, const Access *);
void global_access(Checker *, const Access *);
/* local.c */
ev_u32 local_bounds(Checker *, const Access *);
void local_access(Checker *, const Access *);
/* async.c */
void async_close(Checker *);
void async_block(Checker *);
/* Of the copy by `thread` that is in flight to the shared offset: how many pending groups the thread's last wait may leave for it to be
   complete; EV_NOT_COMMITTED, EV_NOT_WAITED, EV_UNKNOWN. */
ev_i64 async_pending(const Checker *, ev_u32 thread, ev_u32 offset);

#endif
