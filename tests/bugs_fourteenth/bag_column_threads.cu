/* evoengine
name: bag_column_threads
precision: fp32
summary: four columns a thread, a warp has two bags one after the other; four rows at a time in two sums, offsets in shared memory
launches:
  - kernel: bag_sums
    grid: ["ceil_div(BAGS, 8)", "ceil_div(D, 128)"]
    block: [32, 4]
    args: [table, indices, offsets, out, D, BAGS]
*/

constexpr int TEAMS = 4, EACH = 2, SPAN = TEAMS * EACH;   // warps of a block, bags of a warp, bags of a block

__device__ __forceinline__ void add(float4& to, const float4 from) {
    to.x += from.x;
    to.y += from.y;
    to.z += from.z;
    to.w += from.w;
}

__global__ void __launch_bounds__(32 * TEAMS)
bag_sums(const float* __restrict__ table, const int* __restrict__ indices, const int* __restrict__ offsets,
         float* __restrict__ out, int D, int bags) {
    __shared__ int bounds[SPAN + 1];
    const int thread = threadIdx.y * 32 + threadIdx.x;
    const int first = blockIdx.x * SPAN;
    if (thread <= SPAN) bounds[thread] = offsets[min(first + thread, bags)];
    __syncthreads();

    const int column = (blockIdx.y * 32 + threadIdx.x) * 4;
    if (column >= D) return;
    const float* source = table + column;
    auto row = [&](int place) {
        return *reinterpret_cast<const float4*>(source + size_t(indices[place]) * D);
    };

    const float4 zero = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    float4 even = zero, odd = zero;
#pragma unroll
    for (int e = 0; e < EACH; ++e) {
        const int local = e * TEAMS + threadIdx.y;
        if (first + local >= bags) break;
        const int end = bounds[local + 1];
        even = zero;
        odd = zero;
        int i = bounds[local];
        for (; i + 4 <= end; i += 4) {
            const float4 r0 = row(i), r1 = row(i + 1), r2 = row(i + 2), r3 = row(i + 3);
            add(even, r0);
            add(odd, r1);
            add(even, r2);
            add(odd, r3);
        }
        for (; i < end; ++i) add(even, row(i));
        add(even, odd);
        *reinterpret_cast<float4*>(out + size_t(first + local) * D + column) = even;
    }
}
