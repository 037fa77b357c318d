/* evoengine
name: bag_staged_groups
precision: fp32
summary: a block a bag; its indices are staged in shared memory, groups of threads take every other row, a tree adds the groups up
tunables:
  THREADS: [128, 256]
  CHUNK: [64, 128]             # indices staged at a time
let:
  LANES: 16 if D <= 64 else 32 if D <= 128 else 64   # threads of a group, four columns each
launches:
  - kernel: bag_sums<LANES>
    grid: [BAGS, "ceil_div(D, 4 * LANES)"]
    block: [THREADS]
    args: [table, indices, offsets, out, D]
*/

__device__ __forceinline__ float4 plus(float4 a, float4 b) {
    return make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w);
}

template <int LANES>
__global__ void __launch_bounds__(THREADS)
bag_sums(const float* __restrict__ table, const int* __restrict__ indices,
         const int* __restrict__ offsets, float* __restrict__ out, int D) {
    constexpr int GROUPS = THREADS / LANES;
    __shared__ int staged[CHUNK];
    __shared__ float4 partial[GROUPS][LANES];

    const int group = threadIdx.x / LANES, lane = threadIdx.x % LANES;
    const int bag = blockIdx.x;
    const int column = (blockIdx.y * LANES + lane) * 4;
    const bool inside = column < D;
    const int begin = offsets[bag], end = offsets[bag + 1];

    float4 sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    for (int at = begin; at < end; at += CHUNK) {
        const int count = min(CHUNK, end - at);
        for (int i = threadIdx.x; i < count; i += THREADS) staged[i] = indices[at + i];
        __syncthreads();   // the indices are there
        if (inside) {
            for (int i = group; i < count; i += GROUPS) {
                const size_t row = static_cast<size_t>(staged[i]) * D;
                sum = plus(sum, *reinterpret_cast<const float4*>(table + row + column));
            }
        }
        __syncthreads();   // the indices have been used
    }

    partial[group][lane] = sum;
    for (int half = GROUPS / 2; half > 0; half /= 2) {
        __syncthreads();
        if (group < half)
            partial[group][lane] = plus(partial[group][lane], partial[group + half][lane]);
    }
    if (group == 0 && inside)
        *reinterpret_cast<float4*>(out + static_cast<size_t>(bag) * D + column) = partial[0][lane];
}
