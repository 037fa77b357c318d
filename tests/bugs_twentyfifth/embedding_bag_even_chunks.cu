/* evoengine
name: embedding_bag_even_chunks
precision: fp32
summary: the indices are split evenly; a group of lanes sums runs of one bag and adds what a chunk cuts
tunables:
  LANES: [16, 32, 8]           # threads of a group, four columns each
  GROUPS: [4, 8, 2]            # chunks of a block
  CHUNK: [24, 16, 48]          # consecutive indices of a group
  AHEAD: [4, 2, 8]             # rows that are loaded before they are added
let:
  QUADS: D // 4
launches:
  - kernel: clear_sums
    grid: ["ceil_div(BAGS * QUADS, 256)"]
    block: [256]
    args: [out, BAGS * QUADS]
  - kernel: sum_chunks
    grid: ["ceil_div(T, GROUPS * CHUNK)", "ceil_div(QUADS, LANES)"]
    block: [LANES, GROUPS]
    args: [table, indices, offsets, out, T, BAGS, QUADS]
*/

// Bags differ in length, so the work is split by index and not by bag: every group has CHUNK indices,
// however the bags lie. A bag that lies within a chunk is stored; the pieces of one that is cut are
// added to zeros, as are the bags without an index, which no group meets.

struct Entry { int row, bag; };

// The bag of a place: the last one that begins at it or before it. Empty bags begin where the next
// one does, so the last of equals is the one that has the place.
__device__ __forceinline__ int bag_of(const int* __restrict__ offsets, int n_bags, int place) {
    int low = 0, high = n_bags;
    while (high - low > 1) {
        const int mid = (low + high) / 2;
        if (offsets[mid] <= place)
            low = mid;
        else
            high = mid;
    }
    return low;
}

__device__ __forceinline__ float4 operator+(float4 a, float4 b) {
    return make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w);
}

__device__ __forceinline__ void put(float4* to, float4 sum, bool alone) {
    if (alone) {
        *to = sum;
    } else {
        float* parts = reinterpret_cast<float*>(to);
        atomicAdd(parts + 0, sum.x);
        atomicAdd(parts + 1, sum.y);
        atomicAdd(parts + 2, sum.z);
        atomicAdd(parts + 3, sum.w);
    }
}

extern "C" __global__ void __launch_bounds__(256)
clear_sums(float4* __restrict__ out, int n_quads) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i < n_quads) out[i] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
}

extern "C" __global__ void __launch_bounds__(LANES * GROUPS)
sum_chunks(const float4* __restrict__ table, const int* __restrict__ indices, const int* __restrict__ offsets,
           float4* __restrict__ out, int n_indices, int n_bags, int quads) {
    __shared__ Entry entries[GROUPS * CHUNK];
    const int tile_start = blockIdx.x * (GROUPS * CHUNK);
    const int tile_end = min(tile_start + GROUPS * CHUNK, n_indices);

    // All threads look up the bags of the block's indices, one search each, for every column of them.
    for (int i = threadIdx.y * LANES + threadIdx.x; i < tile_end - tile_start; i += LANES * GROUPS) {
        const int place = tile_start + i;
        entries[i] = {indices[place], bag_of(offsets, n_bags, place)};
    }
    __syncthreads();

    const int quad = blockIdx.y * LANES + threadIdx.x;
    const int begin = tile_start + threadIdx.y * CHUNK;
    const int end = min(begin + CHUNK, tile_end);
    if (begin >= end || quad >= quads) return;

    const Entry* mine = entries + threadIdx.y * CHUNK;
    const int count = end - begin;
    int bag = mine[0].bag;
    float4 sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);

    for (int base = 0; base < count; base += AHEAD) {
        float4 rows[AHEAD];
#pragma unroll
        for (int k = 0; k < AHEAD; ++k) {
            if (base + k < count) rows[k] = table[static_cast<long long>(mine[base + k].row) * quads + quad];
        }
#pragma unroll
        for (int k = 0; k < AHEAD; ++k) {
            if (base + k < count) {
                const int next = mine[base + k].bag;
                if (next != bag) {   // the run of the old bag ends in this chunk; where it began tells the rest
                    put(out + static_cast<long long>(bag) * quads + quad, sum, offsets[bag] >= begin);
                    sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
                    bag = next;
                }
                sum = sum + rows[k];
            }
        }
    }
    const bool alone = offsets[bag] >= begin && offsets[bag + 1] <= end;
    put(out + static_cast<long long>(bag) * quads + quad, sum, alone);
}
