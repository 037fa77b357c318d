/* evoengine
name: bags_shared_out_by_index
precision: fp32
summary: every warp takes equally many indices whatever the bags are; a bag of several warps is added up by atomics
tunables:
  WARPS: [4, 8, 2]
  CHUNK: [64, 32, 128]         # indices of a warp, a multiple of 32
let:
  QUADS: D // 4
launches:
  - kernel: clear_sums
    grid: ["ceil_div(BAGS * QUADS, 256)"]
    block: [256]
    args: [out, BAGS * QUADS]
  - kernel: add_rows
    grid: ["ceil_div(T, WARPS * CHUNK)", "ceil_div(QUADS, WARP_SIZE)"]
    block: [WARPS * WARP_SIZE]
    args: [table, indices, offsets, out, T, BAGS, QUADS]
*/

// The sums of bags of rows. Bags differ a lot in length, so the work is cut by indices, not by bags: a
// warp finds the bag of its first index by bisection and goes on through the bags from there. A bag that
// lies in the chunk of one warp is stored, others are added to the cleared output. A lane has four columns.

#define ALL_LANES 0xffffffffu

extern "C" __global__ void __launch_bounds__(256) clear_sums(float4* out, int quads_in_all) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i < quads_in_all) out[i] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
}

// The last bag that starts at or before `index`; of bags that start at the same place all but the last are empty.
__device__ int bag_of(const int* __restrict__ offsets, int bags, int index) {
    int low = 0, high = bags;   // offsets[low] <= index < offsets[high]
    while (high - low > 1) {
        const int middle = low + (high - low) / 2;
        if (offsets[middle] <= index) low = middle;
        else high = middle;
    }
    return low;
}

struct Chunk { int first, last; };

__device__ __forceinline__ void flush(float* __restrict__ out, long long place, const float4& sum, bool whole) {
    if (whole) {
        reinterpret_cast<float4*>(out)[place] = sum;
        return;
    }
    float* cell = out + 4 * place;
    atomicAdd(cell + 0, sum.x);
    atomicAdd(cell + 1, sum.y);
    atomicAdd(cell + 2, sum.z);
    atomicAdd(cell + 3, sum.w);
}

extern "C" __global__ void __launch_bounds__(WARPS * 32)
add_rows(const float4* __restrict__ table, const int* __restrict__ indices, const int* __restrict__ offsets,
         float* __restrict__ out, int T, int BAGS, int quads) {
    const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31;
    const int quad = blockIdx.y * 32 + lane;
    const bool has_columns = quad < quads;   // lanes without columns still hand out indices
    Chunk chunk;
    chunk.first = (blockIdx.x * WARPS + warp) * CHUNK;
    if (chunk.first >= T) return;
    chunk.last = min(chunk.first + CHUNK, T);

    int bag = bag_of(offsets, BAGS, chunk.first);
    int begin = offsets[bag], stop = offsets[bag + 1];
    float4 sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);

    for (int start = chunk.first; start < chunk.last; start += 32) {
        const int count = min(32, chunk.last - start);
        const int mine = lane < count ? indices[start + lane] : 0;
        for (int k = 0; k < count; ++k) {
            if (start + k == stop) {
                const bool whole = begin >= chunk.first && stop <= chunk.last;
                if (has_columns) flush(out, static_cast<long long>(bag) * quads + quad, sum, whole);
                sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
                do {   // past the empty ones, which stay cleared
                    begin = stop;
                    stop = offsets[++bag + 1];
                } while (stop == begin);
            }
            const long long row = __shfl_sync(ALL_LANES, mine, k);
            if (has_columns) {
                const float4 r = table[row * quads + quad];
                sum.x += r.x, sum.y += r.y, sum.z += r.z, sum.w += r.w;
            }
        }
    }
    const bool last_is_whole = begin >= chunk.first && stop <= chunk.last;
    if (has_columns) flush(out, static_cast<long long>(bag) * quads + quad, sum, last_is_whole);
}
