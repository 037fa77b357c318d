/* evoengine
name: bag_rows_in_rings
precision: fp32
summary: a warp has a bag and 128 columns; three rows are on their way by cp.async in a ring of four slots, of which every lane reads only what it copied itself
launches:
  - kernel: add_rows
    grid: ["ceil_div(BAGS, 4)", "ceil_div(D, 128)"]
    block: [32, 4]
    args: [table, indices, offsets, out, BAGS, D]
*/
constexpr int LANES = 32, BAGS_A_BLOCK = 4, SLOTS = 4;

__device__ __forceinline__ void fetch(float4* to, const float4* from) {
    const unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(to));
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(address), "l"(from) : "memory");
}

__device__ __forceinline__ void commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }

__global__ void __launch_bounds__(LANES * BAGS_A_BLOCK)
add_rows(const float4* __restrict__ table, const int* __restrict__ indices, const int* __restrict__ offsets,
         float4* __restrict__ out, int BAGS, int D) {
    __shared__ float4 rings[BAGS_A_BLOCK][SLOTS][LANES];
    const int bag = blockIdx.x * BAGS_A_BLOCK + threadIdx.y, columns = D / 4;
    const int column = blockIdx.y * LANES + threadIdx.x;
    if (bag >= BAGS || column >= columns) return;
    const int begin = offsets[bag], count = offsets[bag + 1] - begin;

#pragma unroll
    for (int s = 0; s < SLOTS - 1; ++s) {
        if (s < count) fetch(&rings[threadIdx.y][s][threadIdx.x], table + size_t(indices[begin + s]) * columns + column);
        commit();   // a group for each row, empty behind the last
    }
    float4 sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    for (int i = 0; i < count; ++i) {
        const int ahead = i + SLOTS - 1;
        if (ahead < count)
            fetch(&rings[threadIdx.y][ahead % SLOTS][threadIdx.x], table + size_t(indices[begin + ahead]) * columns + column);
        commit();
        asm volatile("cp.async.wait_group 3;" ::: "memory");
        const float4 row = rings[threadIdx.y][i % SLOTS][threadIdx.x];
        sum.x += row.x;
        sum.y += row.y;
        sum.z += row.z;
        sum.w += row.w;
    }
    out[size_t(bag) * columns + column] = sum;
}
