/* Runs thread blocks: their warps in turn, each until it exits or waits. */
#include "runtime.h"

void *memset(void *, int, u64);
void ev_check_block(Checker *, u64);
void ev_check_barrier(Checker *, u32, u32, u32);
void ev_check_exit(Checker *, u32);

/* Results of ev_run, as StopReason in run/abi.py. */
enum { FINISHED = 0, FAULT_TRAP = 2, FAULT_FUEL = 3, FAULT_DEADLOCK = 4 };

static Warp *warp_at(u8 *warps, const Launch *launch, u32 index) { return (Warp *)(warps + (u64)index * launch->warp_bytes); }

static void begin_warps(u8 *warps, const Launch *launch) {
    for (u32 index = 0; index < launch->warps; index++) {
        Warp *warp = warp_at(warps, launch, index);
        memset(warp, 0, REGISTERS_OFFSET);
        u32 lanes = launch->threads - index * 32;
        warp->live = lanes >= 32 ? ~0u : (1u << lanes) - 1;
        warp->index = index;
    }
}

/* Whether barrier `id` is complete: every participating warp has all of its live lanes there. Sets the votes. */
static int is_complete(u8 *warps, const Launch *launch, u32 id, u32 *votes, u32 *voters) {
    u32 threads = 0, missing = 0, expected = 0;
    *votes = *voters = 0;
    for (u32 index = 0; index < launch->warps; index++) {
        Warp *warp = warp_at(warps, launch, index);
        if (warp->passed[id]) { /* counts even if the warp has exited since */
            threads += 32;
            expected = warp->expected[id];
        }
        if (!warp->live) continue;
        u32 here = warp->arrived[id];
        missing += here != warp->live;
        if (here == warp->live) threads += 32; /* bar counts whole warps, PTX ISA 9.7.13.1 */
        if (here) expected = warp->expected[id];
        *votes += __builtin_popcount(warp->voted[id] & here);
        *voters += __builtin_popcount(here);
    }
    return expected ? threads >= expected : !missing;
}

static void release(u8 *warps, const Launch *launch, Block *block, u32 id, u32 votes, u32 voters) {
    u32 met[2] = {0, 0};
    for (u32 index = 0; index < launch->warps; index++) {
        Warp *warp = warp_at(warps, launch, index);
        warp->passed[id] = 0;
        if (!warp->arrived[id]) continue;
        if (index < 64) met[index / 32] |= 1u << index % 32;
        warp->released |= warp->arrived[id];
        warp->arrived[id] = warp->voted[id] = 0;
        warp->votes[id] = votes;
        warp->voters[id] = voters;
    }
    if (block->checker) ev_check_barrier(block->checker, id, met[0], met[1]);
}

/* The barriers at which lanes of a warp wait, one bit each. */
static u32 barriers_of(const Warp *warp) {
    u32 found = 0;
    for (u32 id = 0; id < BARRIERS; id++) found |= (u32)(warp->arrived[id] != 0) << id;
    return found;
}

/* Releases the lanes at those of the barriers `waited` that are complete; returns whether there were any. */
static int release_complete(u8 *warps, const Launch *launch, Block *block, u32 waited) {
    u32 any = 0;
    for (; waited; waited &= waited - 1) {
        u32 id = __builtin_ctz(waited), votes, voters;
        if (!is_complete(warps, launch, id, &votes, &voters)) continue;
        release(warps, launch, block, id, votes, voters);
        any = 1;
    }
    return any;
}

static u64 work_so_far(const Launch *launch, const Block *block) {
    u64 sum = 0;
    for (u64 node = 0; node < launch->nodes; node++) sum += launch->weights[node] * block->counters[2 * node];
    return sum;
}

/* Runs every warp that can run, once. `warp_work`: what the work of each is added to, or 0. */
static int run_round(u8 *warps, const Launch *launch, Block *block, u64 *warp_work, u32 *running, u32 *moved) {
    *running = *moved = 0;
    for (u32 index = 0; index < launch->warps; index++) {
        Warp *warp = warp_at(warps, launch, index);
        if (!warp->live) continue;
        *running += 1;
        if (warp->resume && !warp->released) continue;
        *moved += 1;
        u64 before = warp_work ? work_so_far(launch, block) : 0;
        int end = launch->run(warp, block);
        if (warp_work) warp_work[index] += work_so_far(launch, block) - before;
        warp->released = warp->yielded;
        warp->yielded = 0;
        if (end == DONE) {
            warp->live = 0;
            if (block->checker) ev_check_exit(block->checker, index);
        }
        if (end == TRAPPED || end == NO_FUEL) {
            block->fault_warp = index;
            return end;
        }
        /* At a barrier with a thread count, the first threads that reach the count go on; later ones belong to its next phase. */
        for (u32 id = 0; id < BARRIERS; id++)
            if ((warp->arrived[id] | warp->passed[id]) && warp->expected[id]) release_complete(warps, launch, block, 1u << id);
    }
    return 0;
}

static u32 barriers_waited_at(u8 *warps, const Launch *launch) {
    u32 found = 0;
    for (u32 index = 0; index < launch->warps; index++) found |= barriers_of(warp_at(warps, launch, index));
    return found;
}

/* Takes fuel for the start of a block's warps, so that a huge grid of empty blocks ends too. */
static int is_out_of_fuel(const Launch *launch, Block *block) {
    block->fuel -= launch->warps;
    block->fault_site = ~0u;
    block->fault_warp = 0;
    return block->fuel < 0;
}

static int run_block(u8 *warps, const Launch *launch, Block *block, u64 *warp_work) {
    if (is_out_of_fuel(launch, block)) return FAULT_FUEL;
    begin_warps(warps, launch);
    for (;;) {
        u32 running, moved;
        int fault = run_round(warps, launch, block, warp_work, &running, &moved);
        if (fault) return fault;
        if (!running) return FINISHED;
        if (!release_complete(warps, launch, block, barriers_waited_at(warps, launch)) && !moved) return FAULT_DEADLOCK;
    }
}

/* printf after the launch's output limit: prints nothing, so that a flood of output costs no more than its loops. */
void ev_print_nothing(Block *block, u32 mask, const u64 *format, u64 *arguments, u32 kind) {
    (void)block, (void)format, (void)kind;
    for (; mask; mask &= mask - 1) arguments[__builtin_ctz(mask)] = ~0ull;
}

/* Runs blocks until none are left or one fails. `warps`: memory for the warp records of one block. */
int ev_run(const Launch *launch, Block *block, u8 *warps) {
    u64 before = 0;
    while (!*(volatile u32 *)launch->stop) {
        u64 turn = __atomic_fetch_add(launch->next, 1, __ATOMIC_RELAXED);
        if (turn >= launch->end) return FINISHED;
        u64 number = launch->chosen ? launch->chosen[turn] : turn;
        block->index[0] = number % launch->grid[0];
        block->index[1] = number / launch->grid[0] % launch->grid[1];
        block->index[2] = number / launch->grid[0] / launch->grid[1];
        memset((void *)block->shared, (int)launch->poison, launch->shared_bytes); /* so that reads of unwritten memory show */
        if (block->checker) ev_check_block(block->checker, number);
        u64 *warp_work = turn < launch->warp_work_end ? launch->warp_work + turn * launch->warps : 0;
        int fault = run_block(warps, launch, block, warp_work);
        if (fault) {
            *(volatile u32 *)launch->stop = 1;
            return fault;
        }
        if (turn < launch->block_work_end) {
            u64 now = work_so_far(launch, block);
            launch->block_work[turn] = now - before;
            before = now;
        }
    }
    return FINISHED;
}
