/* evoengine
name: embedding_bag_valise_windows
precision: fp32
summary: a block packs some bags in 128 columns; its warps share out windows of indices and add runs to sums in shared memory; long bags are split and merged by the last block
tunables:
  WARPS: [8, 4]
  PACK: [4, 8, 2]              # bags of a block
  AHEAD: [4, 2, 8]             # rows a warp has in flight
let:
  SPLITS: 4 if T >= 64 * BAGS else 1
  PACKAGES: ceil_div(BAGS, PACK)
  SLABS: ceil_div(D, 128)
require:
  - WARPS * WARP_SIZE <= 1024
scratch:
  parts: {dtype: float32, shape: ["SPLITS * BAGS if SPLITS > 1 else 1", D]}
  arrivals: {dtype: int32, shape: [SLABS, PACKAGES], init: 0}
launches:
  - kernel: pack_bags<SPLITS>
    grid: [PACKAGES, SLABS, SPLITS]
    block: [WARPS * WARP_SIZE]
    args: [table, indices, offsets, out, parts, arrivals, BAGS, D]
*/

#define LANES 32
#define THREADS (WARPS * LANES)
#define SHARE 32                     /* indices of a window that one warp walks */
#define WINDOW (WARPS * SHARE)       /* one index a thread */

/* ---- shared state of a block ------------------------------------------------------------------ */

struct Valise {
    int window[2][WINDOW];           // indices: one half is walked while the other is filled
    int starts[PACK + 1];            // where the bags of this block begin
    float sums[PACK][4][LANES];      // by component, so that the lanes hit 32 banks
    int arrived;
};

__device__ __forceinline__ void plus(float4& a, const float4& b) {
    a.x += b.x;
    a.y += b.y;
    a.z += b.z;
    a.w += b.w;
}

/* A run of one bag ends: a bag may continue in other warps, hence the atomics. */
__device__ __forceinline__ void unload(Valise& v, int bag, const float4& run, int lane) {
    atomicAdd(&v.sums[bag][0][lane], run.x);
    atomicAdd(&v.sums[bag][1][lane], run.y);
    atomicAdd(&v.sums[bag][2][lane], run.z);
    atomicAdd(&v.sums[bag][3][lane], run.w);
}

__device__ __forceinline__ void fill_window(int* window, const int* indices, int from, int end) {
    const int at = from + threadIdx.x;
    if (at < end) {
        const unsigned to = (unsigned)__cvta_generic_to_shared(window + threadIdx.x);
        asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(to), "l"(indices + at) : "memory");
    }
    asm volatile("cp.async.commit_group;" ::: "memory");
}

/* ---- one warp over its share of a window: positions [at, stop) --------------------------------- */

__device__ void walk(Valise& v, const int* window, int base, int at, int stop, const float4* table, int columns,
                     int column, int lane) {
    if (at >= stop) return;
    int bag = 0;
    while (at >= v.starts[bag + 1]) ++bag;
    float4 run = make_float4(0.f, 0.f, 0.f, 0.f);
    while (at < stop) {
        const int n = min(AHEAD, stop - at);
        float4 rows[AHEAD];
#pragma unroll
        for (int k = 0; k < AHEAD; ++k)
            if (k < n && column < columns) rows[k] = table[(size_t)window[at - base + k] * columns + column];
#pragma unroll
        for (int k = 0; k < AHEAD; ++k) {
            if (k >= n) break;
            if (at + k >= v.starts[bag + 1]) {           // the next bag that is not empty
                if (column < columns) unload(v, bag, run, lane);
                run = make_float4(0.f, 0.f, 0.f, 0.f);   // a new run
                do ++bag; while (at + k >= v.starts[bag + 1]);
            }
            if (column < columns) plus(run, rows[k]);
        }
        at += n;
    }
    if (column < columns) unload(v, bag, run, lane);
}

/* ---- kernel ------------------------------------------------------------------------------------ */

template <int SPLITS>
__global__ void __launch_bounds__(THREADS)
pack_bags(const float4* __restrict__ table, const int* __restrict__ indices, const int* __restrict__ offsets,
          float4* __restrict__ out, float4* parts, int* arrivals, int BAGS, int D) {
    __shared__ Valise v;
    const int lane = threadIdx.x % LANES, warp = threadIdx.x / LANES;
    const int columns = D / 4, column = blockIdx.y * LANES + lane;
    const int head = blockIdx.x * PACK, bags = min(PACK, BAGS - head);

    // bags beyond the last one are empty
    if (threadIdx.x <= PACK) v.starts[threadIdx.x] = offsets[head + min((int)threadIdx.x, bags)];
    for (int i = threadIdx.x; i < PACK * 4 * LANES; i += THREADS) (&v.sums[0][0][0])[i] = 0.f;
    __syncthreads();

    const long long all = v.starts[PACK] - v.starts[0];
    const int from = v.starts[0] + (int)(all * blockIdx.z / SPLITS);
    const int end = v.starts[0] + (int)(all * (blockIdx.z + 1) / SPLITS);

    int half = 0;
    fill_window(v.window[0], indices, from, end);
    for (int base = from; base < end; base += WINDOW) {
        fill_window(v.window[half ^ 1], indices, base + WINDOW, end);
        asm volatile("cp.async.wait_group 1;" ::: "memory");
        __syncthreads();                                 // this window is complete
        const int mine = base + warp * SHARE;
        walk(v, v.window[half], base, mine, min(end, mine + SHARE), table, columns, column, lane);
        __syncthreads();                                 // and may be filled again
        half ^= 1;
    }

    if (SPLITS == 1) {
        for (int b = warp; b < bags; b += WARPS)
            if (column < columns)
                out[(size_t)(head + b) * columns + column] =
                    make_float4(v.sums[b][0][lane], v.sums[b][1][lane], v.sums[b][2][lane], v.sums[b][3][lane]);
        return;
    }

    // What this split has goes to memory; the block that comes last adds up all of them.
    for (int b = warp; b < bags; b += WARPS)
        if (column < columns)
            parts[((size_t)blockIdx.z * BAGS + head + b) * columns + column] =
                make_float4(v.sums[b][0][lane], v.sums[b][1][lane], v.sums[b][2][lane], v.sums[b][3][lane]);
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) v.arrived = atomicAdd(&arrivals[blockIdx.y * gridDim.x + blockIdx.x], 1);
    __syncthreads();
    if (v.arrived != SPLITS - 1) return;
    __threadfence();
    for (int b = warp; b < bags; b += WARPS) {
        if (column >= columns) continue;
        float4 total = make_float4(0.f, 0.f, 0.f, 0.f);
        for (int s = 0; s < SPLITS; ++s) plus(total, parts[((size_t)s * BAGS + head + b) * columns + column]);
        out[(size_t)(head + b) * columns + column] = total;
    }
}
