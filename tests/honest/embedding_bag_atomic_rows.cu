/* evoengine
name: embedding_bag_atomic_rows
precision: fp32
summary: a warp takes some neighbouring indices, adds rows of the same bag in registers and the sums with atomics
tunables:
  RUN: [16, 8, 32]      # indices of a warp
launches:
  - kernel: clear
    grid: ["ceil_div(BAGS * D, 256)"]
    block: [256]
    args: [out, {value: BAGS * D, dtype: int32}]
  - kernel: add
    grid: ["ceil_div(T, 8 * RUN)"]
    block: [32, 8]
    args: [table, indices, offsets, out, T, BAGS, D]
*/

__global__ void clear(float* out, int count) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i < count) out[i] = 0.0f;
}

__global__ void add(const float* __restrict__ table, const int* __restrict__ indices, const int* __restrict__ offsets, float* out, int T, int BAGS, int D) {
    const int begin = (blockIdx.x * 8 + threadIdx.y) * RUN, end = min(T, begin + RUN);
    if (begin >= end) return;
    int low = 0, high = BAGS;   // the last bag that begins at or before `begin`: empty ones before it begin there, too
    while (high - low > 1) {
        const int middle = (low + high) / 2;
        (offsets[middle] <= begin ? low : high) = middle;
    }
    for (int column = threadIdx.x; column < D; column += 32) {
        int bag = low;
        float sum = 0.0f;
        for (int i = begin; i < end; ++i) {
            if (i >= offsets[bag + 1]) {
                atomicAdd(&out[(long long)bag * D + column], sum);
                sum = 0.0f;
                while (i >= offsets[bag + 1]) ++bag;
            }
            sum += table[(long long)indices[i] * D + column];
        }
        atomicAdd(&out[(long long)bag * D + column], sum);
    }
}
