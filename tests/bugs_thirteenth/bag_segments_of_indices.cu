/* evoengine
name: bag_segments_of_indices
precision: fp32
summary: a block takes a run of indices whatever bags they are in, and adds its sum of a bag to the output where the bag ends
tunables:
  RUN: [32, 64, 16]            # indices of a block
  THREADS: [64, 128]
launches:
  - kernel: clear
    grid: ["ceil_div(BAGS * D, 4 * 256)"]
    block: [256]
    args: [out, BAGS * D]
  - kernel: add_runs
    grid: ["ceil_div(T, RUN)"]
    block: [THREADS]
    args: [table, indices, offsets, out, T, BAGS, D]
*/

__global__ void __launch_bounds__(256) clear(float* __restrict__ out, int size) {
    const int i = (blockIdx.x * 256 + threadIdx.x) * 4;
    if (i < size) *reinterpret_cast<float4*>(out + i) = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
}

// The last bag that begins at or before `place` and is not empty there.
__device__ __forceinline__ int bag_of(const int* __restrict__ offsets, int BAGS, int place) {
    int low = 0, high = BAGS;
    while (high - low > 1) {
        const int middle = (low + high) / 2;
        if (offsets[middle] <= place) low = middle;
        else high = middle;
    }
    return low;
}

__global__ void __launch_bounds__(THREADS)
add_runs(const float* __restrict__ table, const int* __restrict__ indices,
         const int* __restrict__ offsets, float* __restrict__ out, int T, int BAGS, int D) {
    const int begin = blockIdx.x * RUN;
    const int end = min(begin + RUN, T);
    __shared__ int rows[RUN], bags[RUN];

    for (int i = threadIdx.x; i < end - begin; i += THREADS) {
        rows[i] = indices[begin + i];
        bags[i] = bag_of(offsets, BAGS, begin + i);
    }
    __syncthreads();

    for (int c = threadIdx.x; c < D / 2; c += THREADS) {
        float2 sum = make_float2(0.0f, 0.0f);
        for (int i = 0; i < end - begin; ++i) {
            const float2 piece =
                reinterpret_cast<const float2*>(table + static_cast<long long>(rows[i]) * D)[c];
            sum.x += piece.x;
            sum.y += piece.y;
            const bool last = i + 1 == end - begin || bags[i + 1] != bags[i];
            if (last) {
                float* target = out + static_cast<long long>(bags[i]) * D + 2 * c;
                atomicAdd(target, sum.x);
                atomicAdd(target + 1, sum.y);
                sum = make_float2(0.0f, 0.0f);
            }
        }
    }
}
