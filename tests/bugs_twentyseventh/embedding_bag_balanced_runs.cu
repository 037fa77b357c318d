/* evoengine
name: embedding_bag_balanced_runs
precision: fp32
summary: equal runs of indices for every warp, whatever the bags; shared bags by atomics onto zeroed sums
tunables:
  NUM_WARPS: [8, 4]
  RUN_LENGTH: [16, 32, 8]     # indices of a warp
  ZERO_THREADS: [256, 128]
let:
  SPAN_OF_BLOCK: NUM_WARPS * RUN_LENGTH
  COLUMN_PACKS: D // 4
launches:
  - kernel: clear_sums
    grid: ["ceil_div(BAGS * COLUMN_PACKS, ZERO_THREADS)"]
    block: [ZERO_THREADS]
    args: [out, {value: BAGS * COLUMN_PACKS, dtype: int64}]
  - kernel: add_runs
    grid: ["ceil_div(T, SPAN_OF_BLOCK)", "ceil_div(COLUMN_PACKS, WARP_SIZE)"]
    block: [WARP_SIZE, NUM_WARPS]
    args: [table, indices, offsets, out, T, BAGS, COLUMN_PACKS]
*/

// out[b] = the sum of table[indices[i]] for i from offsets[b] to offsets[b + 1] - 1.
// A warp adds RUN_LENGTH consecutive indices, 128 columns wide. Where a bag lies wholly within the
// run of one warp, its sum is stored; where it reaches beyond, every warp adds its share atomically.
// Bags without indices keep the zeros of the first launch.

constexpr int kSpanOfBlock = NUM_WARPS * RUN_LENGTH;

// The last bag that begins at `position` or before; of several that begin there, the one that is not
// empty, since it comes last.
__device__ __forceinline__ int find_bag(const int* __restrict__ offsets, int num_bags, int position) {
    int low = 0, high = num_bags;   // offsets[low] <= position < offsets[high]
    while (high - low > 1) {
        const int middle = (low + high) >> 1;
        if (offsets[middle] <= position) low = middle;
        else high = middle;
    }
    return low;
}

struct ColumnSum {
    float4 value = make_float4(0.0f, 0.0f, 0.0f, 0.0f);

    __device__ __forceinline__ void add(const float4& row) {
        value.x += row.x;
        value.y += row.y;
        value.z += row.z;
        value.w += row.w;
    }

    // Hands the sum over and begins the next one.
    __device__ __forceinline__ void flush(float4* destination, bool bag_is_shared) {
        if (bag_is_shared) {
            float* scalars = reinterpret_cast<float*>(destination);
            atomicAdd(scalars + 0, value.x);
            atomicAdd(scalars + 1, value.y);
            atomicAdd(scalars + 2, value.z);
            atomicAdd(scalars + 3, value.w);
        } else {
            *destination = value;
        }
        value = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    }
};

extern "C" __global__ void __launch_bounds__(ZERO_THREADS)
clear_sums(float4* __restrict__ out, long long num_packs) {
    const long long pack = static_cast<long long>(blockIdx.x) * ZERO_THREADS + threadIdx.x;
    if (pack < num_packs) out[pack] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
}

extern "C" __global__ void __launch_bounds__(32 * NUM_WARPS)
add_runs(const float4* __restrict__ table, const int* __restrict__ indices, const int* __restrict__ offsets,
         float4* __restrict__ out, int num_indices, int num_bags, int column_packs) {
    __shared__ int row_of[kSpanOfBlock];
    __shared__ int bag_of[kSpanOfBlock];

    const int lane = threadIdx.x, warp = threadIdx.y;
    const int block_begin = blockIdx.x * kSpanOfBlock;

    // One search for each index, by all threads side by side.
    for (int slot = warp * 32 + lane; slot < kSpanOfBlock; slot += 32 * NUM_WARPS) {
        const int position = block_begin + slot;
        if (position < num_indices) {
            row_of[slot] = indices[position];
            bag_of[slot] = find_bag(offsets, num_bags, position);
        }
    }
    __syncthreads();

    const int column = blockIdx.y * 32 + lane;
    const int run_begin = block_begin + warp * RUN_LENGTH;
    const int run_end = min(run_begin + RUN_LENGTH, num_indices);
    if (column >= column_packs || run_begin >= run_end) return;

    auto reaches_beyond = [&](int bag) {
        return offsets[bag] < run_begin || offsets[bag + 1] > run_end;
    };

    ColumnSum sum;
    int current_bag = bag_of[run_begin - block_begin];
    float4 upcoming = table[static_cast<long long>(row_of[run_begin - block_begin]) * column_packs + column];
    for (int position = run_begin; position < run_end; ++position) {
        const int slot = position - block_begin;
        const float4 row = upcoming;
        if (position + 1 < run_end)   // the next row is under way while this one is added
            upcoming = table[static_cast<long long>(row_of[slot + 1]) * column_packs + column];
        if (bag_of[slot] != current_bag) {
            sum.flush(out + static_cast<long long>(current_bag) * column_packs + column, reaches_beyond(current_bag));
            current_bag = bag_of[slot];
        }
        sum.add(row);
    }
    sum.flush(out + static_cast<long long>(current_bag) * column_packs + column, reaches_beyond(current_bag));
}
