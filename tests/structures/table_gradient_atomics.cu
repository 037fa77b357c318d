/* evoengine
name: table_gradient_atomics
precision: fp32
summary: a warp a row, which it adds to the table by atomics, neighbouring lanes at neighbouring places
launches:
  - kernel: add
    grid: ["ceil_div(T, 8)"]
    block: [256]
    args: [dy, tokens, out, T, D]
*/
__global__ void __launch_bounds__(256) add(const float* __restrict__ dy, const int* __restrict__ tokens, float* __restrict__ out, int T, int D) {
    const int row = blockIdx.x * 8 + threadIdx.x / 32, lane = threadIdx.x % 32;
    if (row >= T) return;
    float* to = out + size_t(tokens[row]) * D;
    for (int i = lane; i < D; i += 32) atomicAdd(to + i, dy[size_t(row) * D + i]);
}
