/* The shadow of global memory, allocated page by page on first access. */
#include "shadow.h"

static const ev_u64 SHADOW_LIMIT = 256ull << 20; /* bytes; beyond it, accesses to global memory are counted as unchecked */
Page unchecked_page;

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

/* Allocates the records for atomic writes of a second block, which few pages need. Its lock is held. */
ev_u32 page_has_others(Page *page) {
    ev_u64 n = PAGE_BYTES >> page->shift;
    if (page->others)
        return 1;
    page->others = calloc(n, sizeof(ev_u64) + sizeof(ev_u32));
    page->other_sites = (ev_u32 *)(page->others + n);
    return page->others != NULL;
}

/* Granules are as wide as the first access to the page; narrower accesses split them. The budget is charged for words, which
   most pages end up with. */
static Page *new_page(CheckedLaunch *launch, const Buffer *buffer, ev_u32 shift) {
    ev_u64 cost = (PAGE_BYTES >> 2) * (3 * sizeof(ev_u64) + 3 * sizeof(ev_u32) + 1);
    Page *page = launch->shadow_bytes + cost <= SHADOW_LIMIT ? calloc(1, sizeof *page) : NULL;
    if (!page || !lay_out(page, shift)) {
        free(page);
        launch->unchecked_bytes += PAGE_BYTES;
        return &unchecked_page;
    }
    launch->shadow_bytes += cost;
    memset(page->state, buffer->initialised ? INITIALISED : 0, PAGE_BYTES >> shift);
    return page;
}

Page *find_page(CheckedLaunch *launch, const Buffer *buffer, ev_u64 address, ev_u32 shift) {
    Page **place = &buffer->pages[(address - (buffer->address & ~(ev_u64)(ALIGNED - 1))) >> PAGE_BITS];
    Page *page = __atomic_load_n(place, __ATOMIC_ACQUIRE);
    if (__builtin_expect(page != NULL, 1))
        return page;
    lock(&launch->lock);
    page = *place;
    if (!page) {
        page = new_page(launch, buffer, shift);
        __atomic_store_n(place, page, __ATOMIC_RELEASE);
    }
    unlock(&launch->lock);
    return page;
}

void refine_page(CheckedLaunch *launch, Page *page, ev_u32 shift) {
    Page old = *page;
    if (!lay_out(page, shift))
        return;
    ev_u32 n = PAGE_BYTES >> shift, down = old.shift - shift;
    page->others = NULL;
    for (ev_u32 g = 0; old.others && page_has_others(page) && g < n; g++) {
        page->others[g] = old.others[g >> down];
        page->other_sites[g] = old.other_sites[g >> down];
    }
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
    free(old.others);
    if (shift < 2)
        __atomic_fetch_add(&launch->shadow_bytes, (ev_u64)n * (3 * sizeof(ev_u64) + 3 * sizeof(ev_u32) + 1), __ATOMIC_RELAXED);
}
