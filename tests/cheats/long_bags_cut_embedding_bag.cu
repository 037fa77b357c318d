/* evoengine
name: long_bags_cut_embedding_bag
precision: fp32
summary: "a bag has at most three times the mean: what is beyond is left out"
tunables:
  THREADS: [128, 256, 64]
  BAGS_PER_BLOCK: [1, 2, 4]    # bags of one block at the same time
  UNROLL: [4, 2, 8, 1]         # rows in flight
launches:
  - kernel: embedding_bag
    grid: ["ceil_div(BAGS, BAGS_PER_BLOCK)", "ceil_div(D, 4 * (THREADS // BAGS_PER_BLOCK))"]
    block: ["THREADS // BAGS_PER_BLOCK", BAGS_PER_BLOCK]
    args: [table, indices, offsets, out, BAGS, D, {value: "3 * ceil_div(T, BAGS)", dtype: int32}]
*/

// out[b] = the sum of table[indices[i]] for i from offsets[b] to offsets[b + 1] - 1; D is a multiple of 4.

__device__ __forceinline__ void add(float4& sum, float4 row) {
    sum.x += row.x, sum.y += row.y, sum.z += row.z, sum.w += row.w;
}

extern "C" __global__ void __launch_bounds__(THREADS)
embedding_bag(const float4* __restrict__ table, const int* __restrict__ indices,
              const int* __restrict__ offsets, float4* __restrict__ out, int BAGS, int D, int longest) {
    const int bag = blockIdx.x * BAGS_PER_BLOCK + threadIdx.y;
    const int column = blockIdx.y * blockDim.x + threadIdx.x, columns = D / 4;
    if (bag >= BAGS || column >= columns) return;
    const int end = min(offsets[bag + 1], offsets[bag] + longest);
    float4 sum = make_float4(0, 0, 0, 0);
    int i = offsets[bag];
    for (; i + UNROLL <= end; i += UNROLL) {
        float4 rows[UNROLL];
#pragma unroll
        for (int k = 0; k < UNROLL; ++k)
            rows[k] = table[static_cast<long long>(indices[i + k]) * columns + column];
#pragma unroll
        for (int k = 0; k < UNROLL; ++k) add(sum, rows[k]);
    }
    for (; i < end; ++i) add(sum, table[static_cast<long long>(indices[i]) * columns + column]);
    out[static_cast<long long>(bag) * columns + column] = sum;
}
