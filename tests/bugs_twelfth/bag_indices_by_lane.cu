/* evoengine
name: bag_indices_by_lane
precision: fp32
summary: a warp a bag; its lanes read thirty-two indices at once and hand them round by shuffles
tunables:
  WARPS: [4, 8]
launches:
  - kernel: bags
    grid: ["ceil_div(BAGS, WARPS)"]
    block: [32, WARPS]
    args: [table, indices, offsets, out, BAGS, D]
*/

__global__ void __launch_bounds__(32 * WARPS)
bags(const float4* __restrict__ table, const int* __restrict__ indices, const int* __restrict__ offsets, float4* __restrict__ out,
     int BAGS, int D) {
    const int lane = threadIdx.x, bag = blockIdx.x * WARPS + threadIdx.y, columns = D / 4;
    if (bag >= BAGS) return;
    const int begin = offsets[bag], end = offsets[bag + 1];
    for (int base = 0; base < columns; base += 32) {
        const int column = base + lane;   // lanes behind the last column still hand round their index
        float4 sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        for (int i = begin; i < end; i += 32) {
            const int count = min(32, end - i);
            const int mine = lane < count ? indices[i + lane] : 0;
            for (int k = 0; k < count; ++k) {
                const int row = __shfl_sync(0xffffffffu, mine, k);
                if (column < columns) {
                    const float4 four = table[size_t(row) * columns + column];
                    sum.x += four.x, sum.y += four.y, sum.z += four.z, sum.w += four.w;
                }
            }
        }
        if (column < columns) out[size_t(bag) * columns + column] = sum;
    }
}
