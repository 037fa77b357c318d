/* A checked launch: the global buffers, which of them an access belongs to, and their bounds checks. */
#include "shadow.h"

static const ev_u64 NUMBERS = 1ull << 26;  /* block numbers in records */
static const ev_u64 RELEASES = 1ull << 22; /* blocks whose fences are tracked individually */

static void drop_page(Page *page) {
    if (!page || page == &unchecked_page)
        return;
    free(page->written);
    free(page->others);
    free(page);
}

static void set_releases(CheckedLaunch *launch, ev_u64 blocks) {
    ev_u64 count = 1;
    while (count < blocks + 2 && count < RELEASES)
        count *= 2;
    free(launch->released);
    launch->released = calloc(count, sizeof(ev_u32));
    launch->released_mask = count - 1;
    launch->blocks = blocks;
}

CheckedLaunch *ev_check_launch_new(ev_u64 blocks) {
    CheckedLaunch *launch = calloc(1, sizeof *launch);
    if (!launch)
        return NULL;
    set_releases(launch, blocks);
    if (!launch->released) {
        free(launch);
        return NULL;
    }
    return launch;
}

static ev_u64 page_count(const Buffer *buffer) {
    return ((buffer->address & (ALIGNED - 1)) + buffer->bytes + PAGE_BYTES - 1) >> PAGE_BITS;
}

static void forget(Page *page) {
    if (page && page != &unchecked_page) {
        ev_u64 granules = PAGE_BYTES >> page->shift;
        memset(page->written, 0, 3 * granules * sizeof(ev_u64));
        if (page->others)
            memset(page->others, 0, granules * sizeof(ev_u64));
    }
}

void ev_check_launch_next(CheckedLaunch *launch, ev_u64 blocks) {
    launch->base += launch->blocks + 1;
    if (launch->base + blocks + 1 >= NUMBERS) {
        for (ev_u32 i = 0; i < launch->count; i++)
            for (ev_u64 p = 0; p < page_count(&launch->buffers[i]); p++)
                forget(launch->buffers[i].pages[p]);
        launch->base = 0;
    }
    set_releases(launch, blocks);
}

void ev_check_launch_free(CheckedLaunch *launch) {
    if (!launch)
        return;
    for (ev_u32 i = 0; i < launch->count; i++) {
        for (ev_u64 p = 0; p < page_count(&launch->buffers[i]); p++)
            drop_page(launch->buffers[i].pages[p]);
        free(launch->buffers[i].pages);
    }
    sectors_close(&launch->loaded);
    targets_close(&launch->targets);
    free(launch->buffers);
    free(launch->released);
    free(launch);
}

void ev_check_buffer(CheckedLaunch *launch, ev_u64 address, ev_u64 bytes, ev_u32 initialised, ev_i32 index) {
    if (launch->count == launch->capacity) {
        ev_u32 capacity = launch->capacity ? 2 * launch->capacity : 16;
        Buffer *grown = calloc(capacity, sizeof *grown);
        if (!grown)
            return;
        if (launch->count)
            memcpy(grown, launch->buffers, launch->count * sizeof *grown);
        free(launch->buffers);
        launch->buffers = grown;
        launch->capacity = capacity;
    }
    ev_u32 at = launch->count++;
    for (; at && launch->buffers[at - 1].address > address; at--)
        launch->buffers[at] = launch->buffers[at - 1];
    Buffer buffer = {.address = address, .bytes = bytes, .index = index, .initialised = initialised};
    buffer.pages = calloc(page_count(&buffer) + 1, sizeof(Page *));
    launch->buffers[at] = buffer;
}

ev_u64 ev_check_unchecked_bytes(CheckedLaunch *launch) { return launch->unchecked_bytes; }

/* The last buffer that begins at or before `address`; the first buffer if none does; NULL without buffers. */
const Buffer *find_buffer(const CheckedLaunch *launch, ev_u64 address) {
    ev_u32 low = 0, high = launch->count;
    while (high - low > 1) {
        ev_u32 middle = (low + high) / 2;
        if (launch->buffers[middle].address <= address)
            low = middle;
        else
            high = middle;
    }
    return high ? &launch->buffers[low] : NULL;
}

/* Where buffers lie differs from run to run: farther accesses than this belong to none (run/memory.py keeps them apart). */
static const ev_u64 NEAR = 8ull << 20;

static ev_u32 is_near(const Buffer *buffer, ev_u64 address) {
    return address + NEAR >= buffer->address && address <= buffer->address + buffer->bytes + NEAR;
}

/* The buffer nearest to the access; NULL if it is far from all of them. */
static const Buffer *nearest(const CheckedLaunch *launch, ev_u64 address) {
    const Buffer *before = find_buffer(launch, address);
    if (!before)
        return NULL;
    const Buffer *after = before + 1 == launch->buffers + launch->count || address < before->address ? before : before + 1;
    ev_u64 end = before->address + before->bytes;
    const Buffer *found = address < end || address - end <= after->address - address ? before : after;
    return is_near(found, address) ? found : NULL;
}

static OUTLINE void report_stray(Checker *c, ev_u32 warp, ev_u32 lane, ev_u64 address, ev_u32 bytes, ev_u32 site, ev_u32 kind) {
    const Buffer *buffer = nearest(c->launch, address);
    Finding found = {.kind = kind, .space = EV_GLOBAL, .buffer = -1, .bytes = bytes, .offset = (ev_i64)address,
                     .thread = (ev_i32)(warp * 32 + lane), .site = (ev_i32)site, .other_thread = -1, .other_site = -1,
                     .other_block = -1, .times = 1};
    if (buffer) {
        found.buffer = buffer->index;
        found.offset = (ev_i64)(address - buffer->address);
        if (kind == EV_OUT_OF_BOUNDS)
            found.distance = found.offset < 0 ? found.offset : found.offset + bytes - (ev_i64)buffer->bytes;
    }
    report(c, found);
}

/* Those of `lanes` that are out of bounds or misaligned; reports them. */
static OUTLINE ev_u32 stray_lanes(Checker *c, const Access *a, ev_u32 lanes) {
    const Buffer *buffer = NULL;
    ev_u32 stray = 0;
    for (; lanes; lanes &= lanes - 1) {
        ev_u32 lane = lowest(lanes);
        ev_u64 address = a->address[lane];
        buffer = holder(c->launch, buffer, address, a->bytes);
        ev_u32 inside = holds(buffer, address, a->bytes);
        if (inside && is_aligned(address, a->bytes))
            continue;
        report_stray(c, a->warp, lane, address, a->bytes, a->site, inside ? EV_MISALIGNED : EV_OUT_OF_BOUNDS);
        stray |= 1u << lane;
    }
    return stray;
}

ev_u32 global_bounds(Checker *c, const Access *a) {
    const Buffer *buffer = NULL;
    ev_u32 allowed = a->mask;
    for (ev_u32 lanes = a->mask; lanes;) {
        Run run = run_from(a, lowest(lanes));
        ev_u64 address = a->address[run.lane], bytes = run_bytes(a, run);
        buffer = holder(c->launch, buffer, address, bytes);
        if (__builtin_expect(!holds(buffer, address, bytes) || !is_aligned(address, a->bytes), 0))
            allowed &= ~stray_lanes(c, a, lanes_of(run));
        lanes = lanes_behind(lanes, run);
    }
    return allowed;
}
