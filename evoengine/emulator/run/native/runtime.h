/* What a lowered kernel and the driver share. run/abi.py holds the same layouts; a test compares them. */
#pragma once
typedef unsigned char u8;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long i64;

#define BARRIERS 16 /* PTX ISA, 9.7.13.1 bar: sixteen named barriers */
#define REGISTERS_OFFSET 512

/* How a warp function ends. */
enum { DONE = 0, WAITING = 1, TRAPPED = 2, NO_FUEL = 3 };

/* One warp: what it has to keep while others run. Masks have a bit for each lane. */
typedef struct Warp {
    u32 resume;             /* where to go on; 0 at the start */
    u32 live;               /* lanes that have not ended */
    u32 index;              /* in its block */
    u32 released;           /* lanes that may go on from where they wait */
    u32 yielded;            /* lanes that only wait for others to run */
    u32 unused[11];
    u32 arrived[BARRIERS];  /* lanes that wait at a barrier */
    u32 expected[BARRIERS]; /* threads that the barrier waits for; 0 for all of the block */
    u32 voted[BARRIERS];    /* lanes whose predicate holds, for bar.red */
    u32 votes[BARRIERS];    /* how many threads' predicates held, once released */
    u32 voters[BARRIERS];   /* of how many */
    u32 passed[BARRIERS];   /* lanes that arrived at a barrier without waiting there: bar.arrive */
    u32 pad[16];
} Warp; /* saved registers follow at REGISTERS_OFFSET */

typedef struct Checker Checker;
struct Block;
typedef void Print(struct Block *block, u32 mask, const u64 *format, u64 *arguments, u32 kind);

/* One thread block under way on one host thread. */
typedef struct Block {
    u32 index[3];
    u32 grid[3];
    u64 shared;    /* host address of its shared memory */
    u64 local;     /* host address of its threads' local memory */
    u64 globals;   /* host address of the module's variables */
    u64 params;    /* host address of the kernel's parameters */
    u64 *counters; /* two for each block of the flow: warps, lanes */
    Checker *checker;
    Print *print;  /* of printf; ev_print_nothing once the launch has printed all that it may */
    Print *fail;   /* of a failed assertion */
    i64 fuel;      /* loop iterations of warps that are left */
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
    u32 *stop;           /* shared by the host threads: not 0 once one of them met a fault */
    const u32 *weights;  /* of each block of the flow: what one execution by a warp counts as work */
    u64 nodes;           /* blocks of the flow */
    u64 *block_work;          /* work of each thread block, in the order of `next`, of the first `block_work_end` of them */
    u64 block_work_end;
} Launch;

/* Runs blocks until there are none left or one ends badly: how it ended, as in run/abi.py. `warps` is room for the warps of one block. */
int ev_run(const Launch *launch, Block *block, u8 *warps);

/* A printf that prints nothing and gives every lane -1, in the place of its arguments' address as run/printing.py does. */
void ev_print_nothing(Block *block, u32 mask, const u64 *format, u64 *arguments, u32 kind);
