/* Global memory: checks accesses against the shadow of the buffers, shared by all checkers of a launch.
 *
 * Within a block, order is as in shared memory. Blocks are unordered except by message passing: what block A did before a
 * fence that is followed by an atomic (or volatile, relaxed, release) write of A comes before everything that block B does
 * after an atomic (or volatile, relaxed, acquire) access of its own, or a read of a flag, as below. This is permissive: it
 * requires neither the same flag nor the same threads. A read of a value that another block writes atomically (or volatile, relaxed, release) is allowed if the
 * value controls something, as in spin loops, flags and pre-checks of atomicMax. If it controls nothing it is data, and must be
 * ordered. A flag that a block has read so, it may write plainly: it comes after the write that it has seen. */
#include "shadow.h"

enum { NUMBER_SHIFT = 38, TIME_SHIFT = 10 };
enum { WIDEST = 4 }; /* granules of global memory have at most 1 << WIDEST bytes */
static const ev_u64 TIMES = 1ull << 28;

INLINE ev_u64 now_record(const Checker *c, ev_u32 thread) {
    return c->number << NUMBER_SHIFT | ((c->now - c->block_start) & (TIMES - 1)) << TIME_SHIFT | thread;
}
INLINE ev_u64 number_of(ev_u64 record) { return record >> NUMBER_SHIFT; }
INLINE ev_u32 time_of(ev_u64 record) { return (ev_u32)(record >> TIME_SHIFT & (TIMES - 1)); }
INLINE ev_u32 thread_of(ev_u64 record) { return record & 1023; }

/* Whether the access in `record` is ordered before the lane's current access. */
INLINE ev_u32 is_before(const Checker *c, ev_u32 warp, ev_u32 lane, ev_u64 record) {
    if (number_of(record) <= c->launch->base)
        return 1;
    if (number_of(record) == c->number)
        return is_ordered(c, warp, lane, thread_of(record), time_of(record) + c->block_start);
    ev_u32 *released = &c->launch->released[number_of(record) & c->launch->released_mask];
    return c->acquired && time_of(record) < __atomic_load_n(released, __ATOMIC_RELAXED);
}

INLINE ev_u32 slot_of_word(ev_u64 word) { return (ev_u32)(word * 0x9e3779b97f4a7c15ull >> 56) & (POLLS - 1); }

static void remember_polls(Checker *c, const Access *a) {
    for (ev_u32 lanes = a->mask; lanes; lanes &= lanes - 1) {
        const ev_u64 address = a->address[lowest(lanes)];
        for (ev_u64 word = address / 4; word <= (address + a->bytes - 1) / 4; word++)
            c->polls_of_block[slot_of_word(word)] = (Poll){word, c->number};
    }
}

/* Whether the current block has read this word as a flag. */
INLINE ev_u32 has_polled(const Checker *c, ev_u64 address) {
    const Poll *poll = &c->polls_of_block[slot_of_word(address / 4)];
    return poll->word == address / 4 && poll->number == c->number;
}

/* Some lanes of an access, on one page. */
typedef struct {
    Checker *c;
    const Access *access;
    const Buffer *buffer;
    Page *page;
    ev_u64 origin; /* address of the page's first byte */
    Run run;
    ev_u32 first, count; /* granules of the run */
} Visit;

static Finding global_finding(const Visit *v, ev_u32 lane, ev_u32 kind, ev_u64 address, ev_u64 record, ev_i32 other_site) {
    ev_i32 other = record ? (ev_i32)thread_of(record) : -1;
    ev_i64 other_block = record ? (ev_i64)(number_of(record) - v->c->launch->base - 1) : -1;
    return (Finding){.kind = kind, .space = EV_GLOBAL, .buffer = v->buffer->index, .bytes = v->access->bytes,
                     .offset = (ev_i64)(address - v->buffer->address), .thread = (ev_i32)(v->access->warp * 32 + lane),
                     .site = (ev_i32)v->access->site, .other_thread = other, .other_site = record ? other_site : -1,
                     .other_block = other_block, .times = 1};
}

static OUTLINE void report_global(const Visit *v, ev_u32 lane, ev_u32 kind, ev_u64 address, ev_u64 record, ev_i32 other_site) {
    report(v->c, global_finding(v, lane, kind, address, record, other_site));
}

/* Two plain writes of a block: a race, unless the second one leaves the value as it is. */
static OUTLINE void report_second_write(const Visit *v, ev_u32 lane, ev_u32 g) {
    const ev_u64 address = v->origin + ((ev_u64)g << v->page->shift);
    doubt_write(v->c, global_finding(v, lane, EV_WRITE_AFTER_WRITE, address, v->page->written[g], (ev_i32)v->page->write_sites[g]),
                address, 1u << v->page->shift);
}

static void remember_read(const Visit *v, ev_u32 lane, ev_u32 g) {
    const Checker *c = v->c;
    Page *page = v->page;
    ev_u64 fresh = now_record(c, v->access->warp * 32 + lane);
    /* reader a is kept while it is unordered with the new one; b is the latest other reader */
    if (is_before(c, v->access->warp, lane, page->read_a[g])) {
        page->read_a[g] = fresh;
        page->a_sites[g] = v->access->site;
    } else {
        page->read_b[g] = fresh;
        page->b_sites[g] = v->access->site;
    }
}

/* Checks one granule; returns a bit for each kind of finding, so that an access reports each once. */
static ev_u32 examine(const Visit *v, ev_u32 lane, ev_u32 g, ev_u32 known) {
    const Checker *c = v->c;
    const Page *page = v->page;
    const ev_u64 written = page->written[g], address = v->origin + ((ev_u64)g << page->shift);
    const ev_u32 warp = v->access->warp, reads = is_load(v->access), writes = !reads;
    const ev_u32 strong = v->access->kind >= EV_ATOMIC;
    ev_u32 found = 0;
    if ((reads || v->access->kind == EV_ATOMIC) && !(page->state[g] & INITIALISED)) {
        found |= 1u << EV_UNINITIALISED;
        if (!(known & 1u << EV_UNINITIALISED))
            report_global(v, lane, EV_UNINITIALISED, address, 0, -1);
        if (reads)
            return found;
    }
    const ev_u32 by_atomic = page->state[g] & BY_ATOMIC;
    const ev_u32 elsewhere = number_of(written) != c->number;
    const ev_u32 passes = by_atomic && (elsewhere && reads    ? !v->access->is_data
                                        : elsewhere && !strong ? has_polled(c, address)
                                                               : strong || v->access->is_poll);
    const ev_u32 kind = reads ? EV_READ_AFTER_WRITE : EV_WRITE_AFTER_WRITE;
    const ev_u32 doubtful = c->checks & EV_VALUES && v->access->kind == EV_WRITE && !by_atomic && !elsewhere;
    if (elsewhere && reads && passes)
        v->c->acquired = 1; /* a flag, read by a plain load */
    if (written && !passes && !is_before(c, warp, lane, written) && doubtful) {
        report_second_write(v, lane, g);
    } else if (written && !passes && !is_before(c, warp, lane, written)) {
        found |= 1u << kind;
        if (!(known & 1u << kind))
            report_global(v, lane, kind, address, written, (ev_i32)page->write_sites[g]);
    }
    const ev_u64 other = v->access->is_data && by_atomic && page->others ? page->others[g] : 0;
    if (other && !found && number_of(other) != c->number && !is_before(c, warp, lane, other)) {
        found |= 1u << kind;
        if (!(known & 1u << kind))
            report_global(v, lane, kind, address, other, (ev_i32)page->other_sites[g]);
    }
    for (ev_u32 b = 0; writes && b < 2; b++) {
        ev_u64 read = b ? page->read_b[g] : page->read_a[g];
        /* A plain read followed by an atomic swap in a loop (CUDA C++ Programming Guide, atomicCAS) allows writes in between. */
        if (!read || strong || is_before(c, warp, lane, read))
            continue;
        if (!((known | found) & 1u << EV_WRITE_AFTER_READ))
            report_global(v, lane, EV_WRITE_AFTER_READ, address, read, (ev_i32)(b ? page->b_sites : page->a_sites)[g]);
        found |= 1u << EV_WRITE_AFTER_READ;
    }
    return found;
}

/* Whether the granule's latest write is an atomic one of another block of this launch. */
INLINE ev_u32 is_of_another(const Visit *v, ev_u32 g) {
    const ev_u64 written = v->page->written[g], number = number_of(written);
    return v->page->state[g] & BY_ATOMIC && number > v->c->launch->base && number != v->c->number;
}

static void record(const Visit *v, ev_u32 lane, ev_u32 g) {
    const ev_u32 kind = v->access->kind;
    Page *page = v->page;
    if (kind == EV_READ) {
        remember_read(v, lane, g);
        return;
    }
    if (kind == EV_STRONG_READ)
        return;
    if (kind < EV_ATOMIC && page->others)
        page->others[g] = 0;
    if (kind >= EV_ATOMIC && is_of_another(v, g) && page_has_others(page)) {
        page->others[g] = page->written[g];
        page->other_sites[g] = page->write_sites[g];
    }
    page->written[g] = now_record(v->c, v->access->warp * 32 + lane);
    page->write_sites[g] = v->access->site;
    page->state[g] = INITIALISED | (kind >= EV_ATOMIC ? BY_ATOMIC : 0);
    page->read_a[g] = page->read_b[g] = 0; /* earlier readers are ordered before the write, or were reported */
}

/* Whether one of these records is from this launch. */
INLINE ev_u32 any_recent(const ev_u64 *records, ev_u32 count, ev_u64 first_of_launch) {
    ev_u32 found = 0;
    for (ev_u32 i = 0; i < count; i++)
        found |= records[i] >= first_of_launch;
    return found;
}

/* Whether the run accesses only granules that this launch has not accessed yet, the usual case for inputs and outputs. */
static ev_u32 is_untouched(const Visit *v) {
    const Page *page = v->page;
    const ev_u64 launch = (v->c->launch->base + 1) << NUMBER_SHIFT;
    const ev_u32 kind = v->access->kind, first = v->first, count = v->count;
    ev_u32 found = any_recent(page->written + first, count, launch);
    if (is_load(v->access) || kind == EV_ATOMIC)
        for (ev_u32 i = 0; i < count; i++)
            found |= ~page->state[first + i] & INITIALISED;
    if (!is_load(v->access))
        found |= any_recent(page->read_a + first, count, launch) | any_recent(page->read_b + first, count, launch);
    return !found;
}

/* Stores the run's own records, lane after lane. */
INLINE void note_run(const Visit *v, ev_u64 *records, ev_u32 *sites) {
    const ev_u32 each = v->access->bytes >> v->page->shift, each_bits = v->run.same || !each ? 31 : lowest(each), site = v->access->site;
    const ev_u64 fresh = now_record(v->c, v->access->warp * 32 + v->run.lane);
    for (ev_u32 i = 0; i < v->count; i++)
        records[v->first + i] = fresh + (i >> each_bits);
    for (ev_u32 i = 0; i < v->count; i++)
        sites[v->first + i] = site;
}

/* remember_read for a whole run, if its granules are in the same state; returns 0 if not. */
static ev_u32 remember_run(const Visit *v) {
    const Page *page = v->page;
    const ev_u64 launch = (v->c->launch->base + 1) << NUMBER_SHIFT, own = v->c->number << NUMBER_SHIFT;
    ev_u32 old = 0, others = 0;
    for (ev_u32 i = 0; i < v->count; i++) {
        ev_u64 reader = page->read_a[v->first + i];
        old += reader < launch;
        others += (reader >= launch) & (reader - own >= 1ull << NUMBER_SHIFT);
    }
    if (old == v->count)
        note_run(v, page->read_a, page->a_sites);
    else if (others == v->count && !v->c->acquired) /* blocks are not ordered */
        note_run(v, page->read_b, page->b_sites);
    else
        return 0;
    return 1;
}

static void record_run(const Visit *v) {
    Page *page = v->page;
    note_run(v, page->written, page->write_sites);
    memset(page->state + v->first, INITIALISED | (v->access->kind >= EV_ATOMIC ? BY_ATOMIC : 0), v->count);
    if (page->others && v->access->kind < EV_ATOMIC)
        memset(page->others + v->first, 0, v->count * sizeof(ev_u64));
    memset(page->read_a + v->first, 0, v->count * sizeof(ev_u64));
    memset(page->read_b + v->first, 0, v->count * sizeof(ev_u64));
}

/* Records a whole run at once; returns 0 if it must be done lane by lane. */
static ev_u32 is_recorded(const Visit *v) {
    if (v->access->kind == EV_STRONG_READ)
        return 1;
    if (v->run.same && v->run.count > 1)
        return 0;
    if (v->access->kind == EV_READ)
        return remember_run(v);
    for (ev_u32 g = v->first; v->access->kind >= EV_ATOMIC && g < v->first + v->count; g++)
        if (is_of_another(v, g))
            return 0;
    record_run(v);
    return 1;
}

enum { EXAMINE = 1, RECORD = 2 };

static OUTLINE void visit_lanes(const Visit *v, ev_u32 steps) {
    const ev_u32 shift = v->page->shift;
    for (ev_u32 lanes = lanes_of(v->run); lanes; lanes &= lanes - 1) {
        ev_u32 lane = lowest(lanes), known = 0, within = (ev_u32)(v->access->address[lane] - v->origin);
        for (ev_u32 g = within >> shift; g < (within + v->access->bytes) >> shift; g++) {
            if (steps & EXAMINE)
                known |= examine(v, lane, g, known);
            if (steps & RECORD)
                record(v, lane, g);
        }
    }
}

/* Visits the part of a run on one page; returns how many lanes it has. */
static ev_u32 visit_page(Checker *c, const Access *a, const Buffer *buffer, Run run, ev_u32 steps) {
    const ev_u64 address = a->address[run.lane];
    const ev_u32 within = (ev_u32)(address - (buffer->address & ~(ev_u64)(ALIGNED - 1))) & (PAGE_BYTES - 1);
    const ev_u32 room = PAGE_BYTES - within;
    if (!run.same && run_bytes(a, run) > room)
        run.count = room < a->bytes ? 1 : room / a->bytes; /* parts of copies may cross pages: they count for the first */
    const ev_u32 shift = lowest(within | a->bytes | 1u << WIDEST);
    Page *page = find_page(c->launch, buffer, address, shift);
    if (page == &unchecked_page)
        return run.count;
    lock(&page->lock);
    if (shift < page->shift)
        refine_page(c->launch, page, shift);
    Visit visit = {.c = c, .access = a, .buffer = buffer, .page = page, .origin = address - within, .run = run,
                   .first = within >> page->shift, .count = (run_bytes(a, run) < room ? run_bytes(a, run) : room) >> page->shift};
    if (steps & EXAMINE && is_untouched(&visit))
        steps &= ~EXAMINE;
    if (steps & RECORD && !(steps & EXAMINE) && is_recorded(&visit))
        steps &= ~RECORD;
    if (steps)
        visit_lanes(&visit, steps);
    unlock(&page->lock);
    return run.count;
}

static void visit_runs(Checker *c, const Access *a, ev_u32 steps) {
    const Buffer *buffer = NULL;
    for (ev_u32 lanes = a->mask; lanes;) {
        Run run = run_from(a, lowest(lanes));
        buffer = holder(c->launch, buffer, a->address[run.lane], a->bytes);
        if (!holds(buffer, a->address[run.lane], run_bytes(a, run)))
            run.count = 1; /* the run continues in the next buffer */
        run.count = visit_page(c, a, buffer, run, steps);
        lanes = lanes_behind(lanes, run);
    }
}

void global_access(Checker *c, const Access *a) {
    const ev_u32 kind = a->kind;
    /* Atomic operations are recorded in the order in which they are executed. Otherwise the block that counts itself last could
     * find, as the latest, the operation of a block that was recorded after its own and executed before it. */
    if (kind == EV_ATOMIC && !c->performing) {
        lock(&c->launch->performing);
        c->performing = 1;
    }
    if (kind == EV_ATOMIC || kind == EV_STRONG_READ)
        c->acquired = 1;
    if (kind == EV_STRONG_READ)
        remember_polls(c, a);
    if ((kind == EV_ATOMIC || kind == EV_STRONG_WRITE) && c->fenced)
        __atomic_store_n(&c->launch->released[c->number & c->launch->released_mask], c->fenced, __ATOMIC_RELAXED);
    if (is_load(a)) {
        visit_runs(c, a, EXAMINE | RECORD);
        return;
    }
    /* Lanes of one instruction do not race with one another: all are examined before any is recorded. */
    visit_runs(c, a, EXAMINE);
    visit_runs(c, a, RECORD);
}

void ev_check_performed(Checker *c) {
    if (c->performing)
        unlock(&c->launch->performing);
    c->performing = 0;
}
