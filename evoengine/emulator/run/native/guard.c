/* Runs blocks of a kernel that may stray: an access to memory that is not there ends the launch, and not the process. */
#include "runtime.h"

#define SEGMENTATION_FAULT 11
#define BUS_ERROR 7
#define NO_MASK 0x40000000 /* SA_NODEFER: the next one in this thread is handled as well */
#define MOST_THREADS 256   /* host threads that are guarded at once; more run without */

enum { STRAYED = 5 }; /* as StopReason in run/abi.py */

/* struct sigaction of glibc and musl on 64-bit Linux. */
typedef struct {
    void (*handler)(int);
    u64 mask[16];
    int flags;
    void (*restorer)(void);
} SignalAction;

int sigaction(int, const SignalAction *, SignalAction *);
u64 pthread_self(void);

/* Where a host thread goes on; `thread` is 0 where the place is free. */
typedef struct {
    u64 thread;
    void *place[5];
} Guard;

static Guard guards[MOST_THREADS];
static SignalAction before[2]; /* of the two signals, as the process had them */
static u32 installed;

static Guard *guard_of(u64 thread) {
    for (u32 index = 0; index < MOST_THREADS; index++)
        if (__atomic_load_n(&guards[index].thread, __ATOMIC_ACQUIRE) == thread) return &guards[index];
    return 0;
}

static void on_signal(int number) {
    Guard *guard = guard_of(pthread_self());
    if (guard) __builtin_longjmp(guard->place, 1);
    sigaction(number, &before[number == BUS_ERROR], 0); /* the access is repeated, and ends as it would without us */
}

static void install(void) {
    if (__atomic_exchange_n(&installed, 1, __ATOMIC_ACQ_REL)) return;
    SignalAction action = {.handler = on_signal, .flags = NO_MASK};
    sigaction(SEGMENTATION_FAULT, &action, &before[0]);
    sigaction(BUS_ERROR, &action, &before[1]);
}

static Guard *taken(u64 thread) {
    for (u32 index = 0; index < MOST_THREADS; index++) {
        u64 nobody = 0;
        if (__atomic_compare_exchange_n(&guards[index].thread, &nobody, thread, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) return &guards[index];
    }
    return 0;
}

/* As ev_run; an access to memory that is not there ends it. What the kernel prints must not go to Python meanwhile, whose frames
   a jump would skip. */
int ev_run_guarded(const Launch *launch, Block *block, u8 *warps) {
    u32 *volatile stop = launch->stop; /* kept over the jump */
    install();
    Guard *volatile guard = taken(pthread_self());
    if (!guard) return ev_run(launch, block, warps);
    volatile int end = STRAYED;
    if (__builtin_setjmp(guard->place))
        *(volatile u32 *)stop = 1;
    else
        end = ev_run(launch, block, warps);
    __atomic_store_n(&guard->thread, 0, __ATOMIC_RELEASE);
    return end;
}
