/* evoengine
name: expert_row_halves
precision: fp32
summary: a block has a row and 64 columns; two groups of threads share out the depth and meet in shared memory
launches:
  - kernel: products
    grid: [T, "ceil_div(N, 64)"]
    block: [128]
    args: [x, weight, bias, experts, gates, out, K, N]
*/
__global__ void products(const float* x, const float* weight, const float* bias, const int* experts,
                         const float* gates, float* out, int K, int N) {
    __shared__ float upper[64];
    const int own = threadIdx.x % 64, part = threadIdx.x / 64;
    const int row = blockIdx.x, column = blockIdx.y * 64 + own;
    const bool inside = column < N;
    const int middle = K / 2, begin = part == 0 ? 0 : middle, end = part == 0 ? middle : K;
    float result = 0.0f;
    for (int choice = 0; choice < 2; ++choice) {
        const int expert = experts[row * 2 + choice];
        const float gate = gates[row * 2 + choice];
        const float* matrix = weight + size_t(expert) * K * N;
        float sum = 0.0f;
        for (int d = begin; d < end; ++d)
            if (inside) sum += x[size_t(row) * K + d] * matrix[size_t(d) * N + column];
        if (part == 1) upper[own] = sum;
        __syncthreads();
        if (part == 0 && inside) result += gate * (sum + upper[own] + bias[size_t(expert) * N + column]);
        __syncthreads();
    }
    if (part == 0 && inside) out[size_t(row) * N + column] = result;
}
