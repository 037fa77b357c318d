/* evoengine
name: bag_tokens_searched
precision: fp32
summary: a block has 32 indices whatever bags they belong to, finds the first bag by bisection, and adds the sum of each bag that it meets to the zeroed output by atomics
launches:
  - kernel: clear
    grid: ["ceil_div(BAGS * D, 256)"]
    block: [256]
    args: [out, BAGS * D]
  - kernel: add_tokens
    grid: ["ceil_div(T, 32)"]
    block: [64]
    args: [table, indices, offsets, out, T, BAGS, D]
*/
constexpr int THREADS = 64, TOKENS = 32;

__global__ void clear(float* __restrict__ out, int total) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < total) out[i] = 0.0f;
}

__global__ void __launch_bounds__(THREADS)
add_tokens(const float* __restrict__ table, const int* __restrict__ indices, const int* __restrict__ offsets,
           float* __restrict__ out, int T, int BAGS, int D) {
    __shared__ int rows[TOKENS], bags[TOKENS];
    const int first = blockIdx.x * TOKENS, count = min(TOKENS, T - first);

    if (threadIdx.x < count) {
        const int token = first + threadIdx.x;
        rows[threadIdx.x] = indices[token];
        int low = 0, high = BAGS;   // offsets[low] <= token < offsets[high]
        while (high - low > 1) {
            const int middle = (low + high) / 2;
            if (offsets[middle] <= token)
                low = middle;
            else
                high = middle;
        }
        bags[threadIdx.x] = low;
    }
    __syncthreads();

    for (int column = threadIdx.x; column < D; column += THREADS) {
        float sum = 0.0f;
        int bag = bags[0];
        for (int i = 0; i < count; ++i) {
            if (bags[i] != bag) {
                atomicAdd(&out[size_t(bag) * D + column], sum);
                sum = 0.0f;
                bag = bags[i];
            }
            sum += table[size_t(rows[i]) * D + column];
        }
        atomicAdd(&out[size_t(bag) * D + column], sum);
    }
}
