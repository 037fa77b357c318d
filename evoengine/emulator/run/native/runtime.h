/* The records that lowered kernels and the driver share. run/abi.py has the same layouts; a test compares them. */
#pragma once
typedef unsigned char u8;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long i64;

#define BARRIERS 16 /* PTX ISA, 9.7.13.1 bar: sixteen named barriers */
#define REGISTERS_OFFSET 512

/* Return values of a warp function. */
enum { DONE = 0, WAITING = 1, TRAPPED = 2, NO_FUEL = 3 };

/* The record of a warp. Masks have a bit for each lane. */
typedef struct Warp {
    u32 resume;             /* number of the resume point; 0 at the start */
    u32 live;               /* lanes that have not exited */
    u32 index;              /* in its block */
    u32 released;           /* waiting lanes that may go on */
    u32 yielded;            /* lanes that yielded to the other warps */
    u32 waits_at;           /* the site of its last barrier */
    u32 unused[10];
    u32 arrived[BARRIERS];  /* lanes that wait at a barrier */
    u32 expected[BARRIERS]; /* threads that the barrier waits for; 0: the whole block */
    u32 voted[BARRIERS];    /* lanes whose predicate holds, for bar.red */
    u32 votes[BARRIERS];    /* number of threads whose predicate held, set on release */
    u32 voters[BARRIERS];   /* number of threads that voted */
    u32 passed[BARRIERS];   /* lanes that arrived without waiting: bar.arrive */
    u32 pad[16];
} Warp; /* saved registers follow at REGISTERS_OFFSET */

typedef struct Checker Checker;
struct Block;
typedef void Print(struct Block *block, u32 mask, const u64 *format, u64 *arguments, u32 kind);

/* The thread block that a host thread is running. */
typedef struct Block {
    u32 index[3];
    u32 grid[3];
    u64 shared;    /* host address of its shared memory */
    u64 local;     /* host address of its threads' local memory */
    u64 globals;   /* host address of the module's variables */
    u64 params;    /* host address of the kernel's parameters */
    u64 *counters; /* two for each basic block: executions by warps, by lanes */
    Checker *checker;
    Print *print;  /* of printf; ev_print_nothing after the launch's output limit */
    Print *fail;   /* of a failed assertion */
    i64 fuel;      /* remaining budget of loop iterations and warp starts */
    u32 fault_site;
    u32 fault_lanes;
    u32 fault_warp;
    u32 dynamic_shared_bytes;
} Block;

typedef int WarpFunction(Warp *warp, Block *block);

/* One launch. Host threads take blocks from `next` until `end`. */
typedef struct Launch {
    WarpFunction *run;
    u64 *next;           /* shared by the host threads */
    u64 end;
    const u64 *chosen;   /* the blocks to run, or 0 for all */
    u32 grid[3];
    u32 threads;         /* of a block */
    u32 warps;
    u32 warp_bytes;      /* of a Warp with its registers */
    u32 shared_bytes;
    u32 dynamic_shared_bytes;
    u32 poison;          /* the byte that fills shared memory before each block */
    u32 *stop;           /* shared by the host threads: not 0 after a fault in one of them */
    const u32 *weights;  /* work of one execution of each basic block by a warp */
    u64 nodes;           /* number of basic blocks */
    u64 *block_work;          /* work of each thread block, in the order of `next`, of the first `block_work_end` of them */
    u64 block_work_end;
    u64 *warp_work;           /* work of each warp of the first `warp_work_end` blocks: `warps` for each block */
    u64 warp_work_end;
} Launch;

/* Runs blocks until none are left or one fails; returns the StopReason of run/abi.py. `warps`: memory for the warp records of
   one block. */
int ev_run(const Launch *launch, Block *block, u8 *warps);

/* The same for kernels that may stray (guard.c). */
int ev_run_guarded(const Launch *launch, Block *block, u8 *warps);

/* A printf that prints nothing and returns -1 to every lane, in place of its arguments' address, as run/printing.py does. */
void ev_print_nothing(Block *block, u32 mask, const u64 *format, u64 *arguments, u32 kind);
