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
int _setjmp(void *) __attribute__((returns_twice));
void longjmp(void *, int) __attribute__((noreturn));

/* Where a host thread goes on; `thread` is 0 where the place is free. */
typedef struct {
    u64 thread;
    u8 place[512] __attribute__((aligned(16))); /* more than any libc's jmp_buf */
} Guard;

enum { NOT_INSTALLED = 0, UNDER_WAY = 1, INSTALLED = 2 };

static Guard guards[MOST_THREADS];
static SignalAction before[2]; /* of the two signals, as the process had them */
static u32 state;

static Guard *guard_of(u64 thread) {
    for (u32 index = 0; index < MOST_THREADS; index++)
        if (__atomic_load_n(&guards[index].thread, __ATOMIC_ACQUIRE) == thread) return &guards[index];
    return 0;
}

static void on_signal(int number) {
    Guard *guard = guard_of(pthread_self());
    if (guard) longjmp(guard->place, 1);
    sigaction(number, &before[number == BUS_ERROR], 0); /* the access is repeated, and ends as it would without us */
}

static void install(void) {
    u32 expected = NOT_INSTALLED;
    if (__atomic_compare_exchange_n(&state, &expected, UNDER_WAY, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
        SignalAction action = {.handler = on_signal, .flags = NO_MASK};
        sigaction(SEGMENTATION_FAULT, &action, &before[0]);
        sigaction(BUS_ERROR, &action, &before[1]);
        __atomic_store_n(&state, INSTALLED, __ATOMIC_RELEASE);
    }
    while (__atomic_load_n(&state, __ATOMIC_ACQUIRE) != INSTALLED) { /* another host thread does it, in microseconds */
    }
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
    if (_setjmp(guard->place))
        *(volatile u32 *)stop = 1;
    else
        end = ev_run(launch, block, warps);
    __atomic_store_n(&guard->thread, 0, __ATOMIC_RELEASE);
    return end;
}
