/* evoengine
name: bags_shuffled_indices
precision: fp32
summary: a warp a bag; its lanes load 32 indices at once and pass them around, and each sums four columns
launches:
  - kernel: sum_bags
    grid: ["ceil_div(BAGS, 4)"]
    block: [32, 4]
    args: [table, indices, offsets, out, BAGS, D]
*/

extern "C" __global__ void __launch_bounds__(128)
sum_bags(const float* __restrict__ table, const int* __restrict__ indices, const int* __restrict__ offsets,
         float* __restrict__ out, int BAGS, int D) {
    const int lane = threadIdx.x, bag = blockIdx.x * 4 + threadIdx.y;
    if (bag >= BAGS) return;   // the whole warp
    const int begin = offsets[bag], end = offsets[bag + 1];

    for (int chunk = 0; chunk < D; chunk += 128) {
        const int column = chunk + lane * 4;
        float4 sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        for (int from = begin; from < end; from += 32) {
            const int own = from + lane < end ? indices[from + lane] : 0;
            const int count = min(32, end - from);
            for (int j = 0; j < count; ++j) {
                const int index = __shfl_sync(0xffffffffu, own, j);
                if (column < D) {
                    const float4 row = *reinterpret_cast<const float4*>(table + size_t(index) * D + column);
                    sum.x += row.x;
                    sum.y += row.y;
                    sum.z += row.z;
                    sum.w += row.w;
                }
            }
        }
        if (column < D) *reinterpret_cast<float4*>(out + size_t(bag) * D + column) = sum;
    }
}
