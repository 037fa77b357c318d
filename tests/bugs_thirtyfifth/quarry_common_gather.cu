/* evoengine
name: quarry_common_gather
precision: fp32
summary: a block gathers the rows of 8 neighbouring bags together, window by window; each warp sums its own bag
tunables:
  WINDOW: [16, 32, 64]
let:
  SLABS: ceil_div(D, 64)
launches:
  - kernel: gather_bags
    grid: [SLABS, "ceil_div(BAGS, 8)"]
    block: [256]
    args: [table, indices, offsets, out, BAGS, D]
*/

// Bags are of very different lengths, so the *loads* are shared out evenly: the indices of eight consecutive
// bags are one contiguous range, whose rows all 256 threads fetch with cp.async, WINDOW rows at a time.
// Only the additions are done by the warp that owns the bag, and they come out of shared memory.
//
//   SLAB     columns of one block (16 float4)
//   half     a warp reads two rows at once: lanes 0..15 the even ones, lanes 16..31 the odd ones

#define BAGS_PER_BLOCK 8
#define SLAB 64
#define QUADS (SLAB / 4)
#define FULL_MASK 0xffffffffu

#define CP_ASYNC_16(dst, src)                                                                     \
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(                               \
                     (unsigned)__cvta_generic_to_shared(dst)), "l"(src) : "memory")
#define CP_ASYNC_COMMIT() asm volatile("cp.async.commit_group;" ::: "memory")
#define CP_ASYNC_WAIT(n) asm volatile("cp.async.wait_group %0;" ::"n"(n) : "memory")

static __device__ __forceinline__ float both_halves(float v) {
    return v + __shfl_xor_sync(FULL_MASK, v, 16);
}

// Fetch the rows of indices[base .. base + WINDOW) that lie before `last`, this block's columns only.
static __device__ __forceinline__ void gather_window(
        float4 (*tile)[QUADS], const float *table, const int *indices,
        int base, int last, int D, int slab, int tid) {
    const int quad = tid % QUADS;
    const int column = slab * SLAB + 4 * quad;
    if (column >= D) return;
    for (int r = tid / QUADS; r < WINDOW; r += 256 / QUADS) {
        if (base + r >= last) break;
        const float *row = table + (size_t)indices[base + r] * D;
        CP_ASYNC_16(&tile[r][quad], row + column);
    }
}

extern "C" __global__ void __launch_bounds__(256)
gather_bags(const float *__restrict__ table, const int *__restrict__ indices,
            const int *__restrict__ offsets, float *__restrict__ out, int BAGS, int D) {
    __shared__ float4 tiles[2][WINDOW][QUADS];

    const int tid = threadIdx.x;
    const int warp = tid >> 5, lane = tid & 31;
    const int half = lane / QUADS, quad = lane % QUADS;
    const int slab = blockIdx.x;

    const int first_bag = blockIdx.y * BAGS_PER_BLOCK;
    const int beyond_bag = min(first_bag + BAGS_PER_BLOCK, BAGS);
    const int first = offsets[first_bag];
    const int last = offsets[beyond_bag];

    // this warp's bag, an empty range if there is none
    const int bag = first_bag + warp;
    const int mine_begin = bag < BAGS ? offsets[bag] : last;
    const int mine_end = bag < BAGS ? offsets[bag + 1] : last;

    const int column = slab * SLAB + 4 * quad;
    const bool live = column < D;

    float4 acc = make_float4(0.f, 0.f, 0.f, 0.f);
    const int windows = (last - first + WINDOW - 1) / WINDOW;

    gather_window(tiles[0], table, indices, first, last, D, slab, tid);
    CP_ASYNC_COMMIT();

    for (int w = 0; w < windows; ++w) {
        const int base = first + w * WINDOW;
        // the next window travels while this one is added up
        gather_window(tiles[(w + 1) & 1], table, indices, base + WINDOW, last, D, slab, tid);
        CP_ASYNC_COMMIT();
        CP_ASYNC_WAIT(1);
        __syncthreads();

        const int lo = max(mine_begin - base, 0);
        const int hi = min(mine_end - base, WINDOW);
        if (live) {
            for (int r = lo + half; r < hi; r += 2) {
                const float4 t = tiles[w & 1][r][quad];
                acc.x += t.x;
                acc.y += t.y;
                acc.z += t.z;
                acc.w += t.w;
            }
        }
        __syncthreads();   // everyone is through with this buffer
    }
    CP_ASYNC_WAIT(0);

    acc.x = both_halves(acc.x);
    acc.y = both_halves(acc.y);
    acc.z = both_halves(acc.z);
    acc.w = both_halves(acc.w);

    if (half == 0 && live && bag < BAGS)
        *reinterpret_cast<float4 *>(out + (size_t)bag * D + column) = acc;
}
