/* evoengine
name: bags_equal_slices
precision: fp32
summary: every block walks over 24 indices, whatever bags they belong to, and adds what it has to a bag when the next one begins
launches:
  - kernel: clear
    grid: ["ceil_div(BAGS * D, 256)"]
    block: [256]
    args: [out, BAGS * D]
  - kernel: add_slices
    grid: ["ceil_div(T, 24)"]
    block: [64]
    args: [table, indices, offsets, out, T, BAGS, D]
*/

constexpr int SLICE = 24, THREADS = 64;

extern "C" __global__ void __launch_bounds__(256) clear(float* __restrict__ out, int count) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i < count) out[i] = 0.0f;
}

extern "C" __global__ void __launch_bounds__(THREADS)
add_slices(const float* __restrict__ table, const int* __restrict__ indices, const int* __restrict__ offsets,
           float* __restrict__ out, int T, int BAGS, int D) {
    __shared__ int rows[SLICE], bags[SLICE];
    const int first = blockIdx.x * SLICE, count = min(SLICE, T - first);
    if (threadIdx.x < count) {
        const int place = first + threadIdx.x;
        int low = 0, high = BAGS;   // offsets[low] <= place < offsets[high]
        while (high - low > 1) {
            const int middle = (low + high) / 2;
            if (offsets[middle] <= place)
                low = middle;
            else
                high = middle;
        }
        rows[threadIdx.x] = indices[place];
        bags[threadIdx.x] = low;
    }
    __syncthreads();

    for (int c = threadIdx.x; c < D; c += THREADS) {
        float sum = 0.0f;
        int bag = bags[0];
        for (int j = 0; j < count; ++j) {
            if (bags[j] != bag) {
                atomicAdd(&out[size_t(bag) * D + c], sum);
                sum = 0.0f;
                bag = bags[j];
            }
            sum += table[size_t(rows[j]) * D + c];
        }
        atomicAdd(&out[size_t(bag) * D + c], sum);
    }
}
