/* evoengine
name: embedding_bag_thread_per_sum
precision: fp32
summary: a thread a sum of one column, four bytes a load, one row after the other
tunables:
  THREADS: [256, 128]
launches:
  - kernel: embedding_bag
    grid: ["ceil_div(BAGS * D, THREADS)"]
    block: [THREADS]
    args: [table, indices, offsets, out, BAGS, D]
*/

__global__ void __launch_bounds__(THREADS)
embedding_bag(const float* __restrict__ table, const int* __restrict__ indices, const int* __restrict__ offsets, float* __restrict__ out,
              int BAGS, int D) {
    const long long at = (long long)blockIdx.x * THREADS + threadIdx.x;
    if (at >= (long long)BAGS * D) return;
    const int bag = int(at / D), column = int(at % D);
    float sum = 0.0f;
#pragma unroll 1
    for (int i = offsets[bag]; i < offsets[bag + 1]; ++i) sum += table[(long long)indices[i] * D + column];
    out[at] = sum;
}
