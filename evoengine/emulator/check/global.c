/* Global memory: the shadow of the buffers, shared by all checkers of a launch.
 *
 * Within a block order is as in shared memory. Blocks have none, except by message passing: what block A did before a fence that an
 * atomic (or volatile, relaxed, release) write of A followed comes before everything that block B does after an atomic (or volatile,
 * relaxed, acquire) access of its own. That is generous: it asks neither that both mean the same flag nor that the same threads do
 * it. A plain read of what another block writes atomically is let pass: "is my turn over" loops and pre-checks of atomicMax do it.
 */
#include "shadow.h"

enum { NUMBER_SHIFT = 38, TIME_SHIFT = 10 };
static const ev_u64 TIMES = 1ull << 28;
static const ev_u64 SHADOW_LIMIT = 256ull << 20; /* bytes: beyond, global memory goes unchecked and is counted */
Page unchecked_page;

INLINE ev_u64 now_record(const Checker *c, ev_u32 thread) {
    return c->number << NUMBER_SHIFT | ((c->now - c->block_start) & (TIMES - 1)) << TIME_SHIFT | thread;
}
INLINE ev_u64 number_of(ev_u64 record) { return record >> NUMBER_SHIFT; }
INLINE ev_u32 time_of(ev_u64 record) { return (ev_u32)(record >> TIME_SHIFT & (TIMES - 1)); }
INLINE ev_u32 thread_of(ev_u64 record) { return record & 1023; }

static ev_u32 lay_out(Page *page, ev_u32 shift) {
    ev_u64 n = PAGE_BYTES >> shift;
    ev_u8 *memory = calloc(n, 3 * sizeof(ev_u64) + 3 * sizeof(ev_u32) + 1);
    if (!memory)
        return 0;
    page->shift = shift;
    page->written = (ev_u64 *)memory;
    page->read_a = page->written + n;
    page->read_b = page->read_a + n;
    page->write_sites = (ev_u32 *)(page->read_b + n);
    page->a_sites = page->write_sites + n;
    page->b_sites = page->a_sites + n;
    page->state = (ev_u8 *)(page->b_sites + n);
    return 1;
}

static Page *new_page(CheckedLaunch *launch, const Buffer *buffer) {
    ev_u64 cost = (PAGE_BYTES >> 2) * (3 * sizeof(ev_u64) + 3 * sizeof(ev_u32) + 1);
    Page *page = launch->shadow_bytes + cost <= SHADOW_LIMIT ? calloc(1, sizeof *page) : NULL;
    if (!page || !lay_out(page, 2)) {
        free(page);
        launch->unchecked_bytes += PAGE_BYTES;
        return &unchecked_page;
    }
    launch->shadow_bytes += cost;
    memset(page->state, buffer->initialised ? INITIALISED : 0, PAGE_BYTES >> 2);
    return page;
}

static Page *find_page(CheckedLaunch *launch, const Buffer *buffer, ev_u64 address) {
    Page **place = &buffer->pages[(address - (buffer->address & ~(ev_u64)(ALIGNED - 1))) >> PAGE_BITS];
    Page *page = __atomic_load_n(place, __ATOMIC_ACQUIRE);
    if (__builtin_expect(page != NULL, 1))
        return page;
    lock(&launch->lock);
    page = *place;
    if (!page) {
        page = new_page(launch, buffer);
        __atomic_store_n(place, page, __ATOMIC_RELEASE);
    }
    unlock(&launch->lock);
    return page;
}

static OUTLINE void refine_page(CheckedLaunch *launch, Page *page, ev_u32 shift) {
    Page old = *page;
    if (!lay_out(page, shift))
        return;
    ev_u32 n = PAGE_BYTES >> shift, down = old.shift - shift;
    for (ev_u32 g = 0; g < n; g++) {
        page->written[g] = old.written[g >> down];
        page->read_a[g] = old.read_a[g >> down];
        page->read_b[g] = old.read_b[g >> down];
        page->write_sites[g] = old.write_sites[g >> down];
        page->a_sites[g] = old.a_sites[g >> down];
        page->b_sites[g] = old.b_sites[g >> down];
        page->state[g] = old.state[g >> down];
    }
    free(old.written);
    __atomic_fetch_add(&launch->shadow_bytes, (ev_u64)n * (3 * sizeof(ev_u64) + 3 * sizeof(ev_u32) + 1), __ATOMIC_RELAXED);
}

/* Whether what `record` tells comes before what the lane does now. */
INLINE ev_u32 is_before(const Checker *c, ev_u32 warp, ev_u32 lane, ev_u64 record) {
    if (number_of(record) <= c->launch->base)
        return 1;
    if (number_of(record) == c->number)
        return is_ordered(c, warp, lane, thread_of(record), time_of(record) + c->block_start);
    ev_u32 *released = &c->launch->released[number_of(record) & c->launch->released_mask];
    return c->acquired && time_of(record) < __atomic_load_n(released, __ATOMIC_RELAXED);
}

typedef struct {
    Checker *c;
    const Buffer *buffer;
    ev_u64 origin; /* address of the page's first byte */
    ev_u32 warp, lane, kind, bytes, site;
} Visit;

static OUTLINE void report_global(const Visit *v, ev_u32 kind, ev_u64 address, ev_u64 record, ev_i32 other_site) {
    ev_i32 other = record ? (ev_i32)thread_of(record) : -1;
    ev_i64 other_block = record ? (ev_i64)(number_of(record) - v->c->launch->base - 1) : -1;
    report(v->c, (Finding){.kind = kind, .space = EV_GLOBAL, .buffer = v->buffer->index, .bytes = v->bytes,
                           .offset = (ev_i64)(address - v->buffer->address), .thread = (ev_i32)(v->warp * 32 + v->lane),
                           .site = (ev_i32)v->site, .other_thread = other, .other_site = record ? other_site : -1,
                           .other_block = other_block, .times = 1});
}

static void remember_read(const Visit *v, Page *page, ev_u32 g) {
    const Checker *c = v->c;
    ev_u64 fresh = now_record(c, v->warp * 32 + v->lane);
    /* a stays while it is unordered to the newcomer; b is the latest of the others */
    if (is_before(c, v->warp, v->lane, page->read_a[g])) {
        page->read_a[g] = fresh;
        page->a_sites[g] = v->site;
    } else {
        page->read_b[g] = fresh;
        page->b_sites[g] = v->site;
    }
}

/* Looks for what is wrong with one granule; gives a bit per kind found, so that an access reports each once. */
static ev_u32 examine(const Visit *v, const Page *page, ev_u32 g, ev_u32 known) {
    const Checker *c = v->c;
    const ev_u64 written = page->written[g], address = v->origin + ((ev_u64)g << page->shift);
    const ev_u32 reads = v->kind == EV_READ || v->kind == EV_STRONG_READ, writes = !reads;
    const ev_u32 strong = v->kind >= EV_ATOMIC;
    ev_u32 found = 0;
    if ((reads || v->kind == EV_ATOMIC) && !(page->state[g] & INITIALISED)) {
        found |= 1u << EV_UNINITIALISED;
        if (!(known & 1u << EV_UNINITIALISED))
            report_global(v, EV_UNINITIALISED, address, 0, -1);
        if (reads)
            return found;
    }
    const ev_u32 by_atomic = page->state[g] & BY_ATOMIC;
    const ev_u32 passes = by_atomic && (strong || (reads && number_of(written) != c->number));
    const ev_u32 kind = reads ? EV_READ_AFTER_WRITE : EV_WRITE_AFTER_WRITE;
    if (written && !passes && !is_before(c, v->warp, v->lane, written)) {
        found |= 1u << kind;
        if (!(known & 1u << kind))
            report_global(v, kind, address, written, (ev_i32)page->write_sites[g]);
    }
    for (ev_u32 b = 0; writes && b < 2; b++) {
        ev_u64 read = b ? page->read_b[g] : page->read_a[g];
        /* Who reads plainly and then swaps atomically in a loop (CUDA C++ Programming Guide, atomicCAS) expects others to come between. */
        if (!read || strong || is_before(c, v->warp, v->lane, read))
            continue;
        if (!((known | found) & 1u << EV_WRITE_AFTER_READ))
            report_global(v, EV_WRITE_AFTER_READ, address, read, (ev_i32)(b ? page->b_sites : page->a_sites)[g]);
        found |= 1u << EV_WRITE_AFTER_READ;
    }
    return found;
}

static void record(const Visit *v, Page *page, ev_u32 g) {
    if (v->kind == EV_READ) {
        remember_read(v, page, g);
        return;
    }
    if (v->kind == EV_STRONG_READ)
        return;
    page->written[g] = now_record(v->c, v->warp * 32 + v->lane);
    page->write_sites[g] = v->site;
    page->state[g] = INITIALISED | (v->kind >= EV_ATOMIC ? BY_ATOMIC : 0);
    page->read_a[g] = page->read_b[g] = 0; /* who read before the write is ordered before it, or was reported */
}

enum { EXAMINE = 1, RECORD = 2 };

static void visit_lane(Visit *v, Page *page, ev_u64 address, ev_u32 steps) {
    ev_u32 within = (ev_u32)(address - (v->buffer->address & ~(ev_u64)(ALIGNED - 1))) & (PAGE_BYTES - 1), known = 0;
    v->origin = address - within;
    ev_u32 shift = lowest((ev_u32)(within | v->bytes | 4));
    lock(&page->lock);
    if (shift < page->shift)
        refine_page(v->c->launch, page, shift);
    for (ev_u32 g = within >> page->shift; g < (within + v->bytes) >> page->shift; g++) {
        if (steps & EXAMINE)
            known |= examine(v, page, g, known);
        if (steps & RECORD)
            record(v, page, g);
    }
    unlock(&page->lock);
}

static void visit_lanes(Checker *c, ev_u32 warp, ev_u32 mask, ev_u32 kind, ev_u32 bytes, const ev_u64 *address, ev_u32 site, ev_u32 steps) {
    const Buffer *buffer = NULL;
    for (ev_u32 lanes = mask; lanes; lanes &= lanes - 1) {
        ev_u32 lane = lowest(lanes);
        buffer = holder(c->launch, buffer, address[lane], bytes);
        Page *page = find_page(c->launch, buffer, address[lane]);
        if (page == &unchecked_page)
            continue;
        Visit visit = {.c = c, .buffer = buffer, .warp = warp, .lane = lane, .kind = kind, .bytes = bytes, .site = site};
        visit_lane(&visit, page, address[lane], steps);
    }
}

void global_access(Checker *c, ev_u32 warp, ev_u32 mask, ev_u32 kind, ev_u32 bytes, const ev_u64 *address, ev_u32 site) {
    if (kind == EV_ATOMIC || kind == EV_STRONG_READ)
        c->acquired = 1;
    if ((kind == EV_ATOMIC || kind == EV_STRONG_WRITE) && c->fenced)
        __atomic_store_n(&c->launch->released[c->number & c->launch->released_mask], c->fenced, __ATOMIC_RELAXED);
    if (kind == EV_READ || kind == EV_STRONG_READ) {
        visit_lanes(c, warp, mask, kind, bytes, address, site, EXAMINE | RECORD);
        return;
    }
    /* Lanes of one instruction do not race with one another: all are examined before any is recorded. */
    visit_lanes(c, warp, mask, kind, bytes, address, site, EXAMINE);
    visit_lanes(c, warp, mask, kind, bytes, address, site, RECORD);
}
