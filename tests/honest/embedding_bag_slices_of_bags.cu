/* evoengine
name: embedding_bag_slices_of_bags
precision: fp32
summary: each bag is cut into slices that blocks add into scratch, which begins with zeros; a second launch adds the slices
tunables:
  SLICES: [4, 1, 8]
scratch:
  parts: {dtype: float32, shape: [SLICES, BAGS, D], init: 0}
launches:
  - kernel: slice
    grid: [BAGS, SLICES]
    block: ["min(256, D)"]
    args: [table, indices, offsets, parts, BAGS, D]
  - kernel: add
    grid: ["ceil_div(BAGS * D, 256)"]
    block: [256]
    args: [parts, out, {value: BAGS * D, dtype: int32}]
*/

__global__ void slice(const float* __restrict__ table, const int* __restrict__ indices, const int* __restrict__ offsets, float* __restrict__ parts, int BAGS, int D) {
    const int bag = blockIdx.x, begin = offsets[bag], count = offsets[bag + 1] - begin;
    const int first = begin + (int)((long long)count * blockIdx.y / SLICES), last = begin + (int)((long long)count * (blockIdx.y + 1) / SLICES);
    if (first == last) return;   // zero already
    for (int column = threadIdx.x; column < D; column += blockDim.x) {
        float even = 0.0f, odd = 0.0f;
        int i = first;
        for (; i + 1 < last; i += 2) {
            even += __ldg(&table[(long long)indices[i] * D + column]);
            odd += __ldg(&table[(long long)indices[i + 1] * D + column]);
        }
        if (i < last) even += __ldg(&table[(long long)indices[i] * D + column]);
        parts[((long long)blockIdx.y * BAGS + bag) * D + column] = even + odd;
    }
}

__global__ void add(const float* __restrict__ parts, float* __restrict__ out, int count) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= count) return;
    float sum = 0.0f;
    for (int s = 0; s < SLICES; ++s) sum += parts[(long long)s * count + i];
    out[i] = sum;
}
