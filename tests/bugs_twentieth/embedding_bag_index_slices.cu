/* evoengine
name: embedding_bag_index_slices
precision: fp32
summary: equal slices of the indices, whatever the bags; bags that cross slices are added atomically
tunables:
  SLICE: [64, 32, 128]         # indices to a block
  THREADS: [64, 32]            # four columns each
let:
  QUADS: D // 4
launches:
  - kernel: clearOutput
    grid: ["ceil_div(BAGS * QUADS, 256)"]
    block: [256]
    args: [out, {value: BAGS * QUADS, dtype: int64}]
  - kernel: sumSlices
    grid: ["ceil_div(T, SLICE)", "ceil_div(QUADS, THREADS)"]
    block: [THREADS]
    args: [table, indices, offsets, out, T, BAGS, QUADS]
*/

// Bags differ in length, slices of the list of indices do not. A block finds the bag of each of its
// indices by bisection, adds rows as long as the bag is the same, and hands a sum over where it ends.

extern "C" __global__ void __launch_bounds__(256)
clearOutput(float4* __restrict__ out, long long count) {
    const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) out[i] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
}

// The last bag that begins at `position` or before it; empty bags before it begin there too.
__device__ __forceinline__ int bagAt(const int* __restrict__ offsets, int bags, int position) {
    int low = 0, high = bags;   // offsets[low] <= position < offsets[high]
    while (high - low > 1) {
        const int middle = (low + high) >> 1;
        if (offsets[middle] <= position)
            low = middle;
        else
            high = middle;
    }
    return low;
}

__device__ __forceinline__ void accumulate(float4& sum, const float4& row) {
    sum.x += row.x, sum.y += row.y, sum.z += row.z, sum.w += row.w;
}

// A bag that lies in the slice as a whole has one writer; any other is shared with other blocks.
__device__ __forceinline__ void handOver(float4* __restrict__ target, const float4& sum, bool isWhole) {
    if (isWhole) {
        *target = sum;
        return;
    }
    float* parts = reinterpret_cast<float*>(target);
    atomicAdd(parts + 0, sum.x);
    atomicAdd(parts + 1, sum.y);
    atomicAdd(parts + 2, sum.z);
    atomicAdd(parts + 3, sum.w);
}

extern "C" __global__ void __launch_bounds__(THREADS)
sumSlices(const float4* __restrict__ table, const int* __restrict__ indices, const int* __restrict__ offsets,
          float4* __restrict__ out, int T, int bags, int quads) {
    __shared__ int rowOf[SLICE];
    __shared__ int bagOf[SLICE];
    const int begin = blockIdx.x * SLICE;
    const int length = min(SLICE, T - begin);

    for (int i = threadIdx.x; i < length; i += THREADS) {
        rowOf[i] = indices[begin + i];
        bagOf[i] = bagAt(offsets, bags, begin + i);
    }
    __syncthreads();

    const int quad = blockIdx.y * THREADS + threadIdx.x;
    if (quad >= quads) return;   // behind the only barrier

    const float4* column = table + quad;
    float4 sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    float4 ahead = column[(long long)rowOf[0] * quads];
    for (int i = 0; i < length; ++i) {
        const float4 row = ahead;
        if (i + 1 < length) ahead = column[(long long)rowOf[i + 1] * quads];
        accumulate(sum, row);

        const int bag = bagOf[i];
        if (i + 1 == length || bagOf[i + 1] != bag) {
            const bool isWhole = offsets[bag] >= begin && offsets[bag + 1] <= begin + length;
            handOver(out + (long long)bag * quads + quad, sum, isWhole);
            sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        }
    }
}
