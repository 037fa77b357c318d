/* evoengine
name: embedding_bag_shuffled_indices
precision: fp32
summary: a warp a bag; lanes load 32 indices at once and hand them round by shuffles, two rows in flight
tunables:
  WARPS: [4, 8]
launches:
  - kernel: embedding_bag
    grid: ["ceil_div(BAGS, WARPS)"]
    block: [32, WARPS]
    args: [table, indices, offsets, out, BAGS, D]
*/

__device__ __forceinline__ void add(float4& sum, float4 row) { sum.x += row.x, sum.y += row.y, sum.z += row.z, sum.w += row.w; }

__global__ void __launch_bounds__(32 * WARPS)
embedding_bag(const float4* __restrict__ table, const int* __restrict__ indices, const int* __restrict__ offsets, float4* __restrict__ out,
              int BAGS, int D) {
    const int bag = blockIdx.x * WARPS + threadIdx.y, lane = threadIdx.x, columns = D / 4;
    if (bag >= BAGS) return;
    const int begin = offsets[bag], end = offsets[bag + 1];
    for (int first = 0; first < columns; first += 32) {
        const int column = min(first + lane, columns - 1);
        float4 even = make_float4(0.0f, 0.0f, 0.0f, 0.0f), odd = even;
        for (int from = begin; from < end; from += 32) {
            const int count = min(32, end - from);
            const int mine = lane < count ? indices[from + lane] : 0;
            int i = 0;
            for (; i + 1 < count; i += 2) {
                const long long one = __shfl_sync(0xffffffffu, mine, i), two = __shfl_sync(0xffffffffu, mine, i + 1);
                add(even, table[one * columns + column]);
                add(odd, table[two * columns + column]);
            }
            if (i < count) {
                const long long last = __shfl_sync(0xffffffffu, mine, i);
                add(even, table[last * columns + column]);
            }
        }
        add(even, odd);
        if (first + lane < columns) out[(long long)bag * columns + column] = even;
    }
}
