/* evoengine
name: layernorm_peeled_vectors
precision: fp32
summary: a block has a row; elements before the first boundary of 16 bytes, vectors of four, and what is left
launches:
  - kernel: layernorm
    grid: [N]
    block: [128]
    args: [x, weight, bias, out, C, eps]
*/
constexpr int THREADS = 128, WARPS = 4;

__device__ float block_sum(float value, float* totals) {
    for (int step = 16; step > 0; step /= 2) value += __shfl_xor_sync(~0u, value, step);
    if (threadIdx.x % 32 == 0) totals[threadIdx.x / 32] = value;
    __syncthreads();
    float sum = 0.0f;
    for (int w = 0; w < WARPS; ++w) sum += totals[w];
    __syncthreads();  // the next sum uses the same place
    return sum;
}

__global__ void layernorm(const float* x, const float* weight, const float* bias, float* out, int C, float eps) {
    __shared__ float totals[WARPS];
    const float* row = x + size_t(blockIdx.x) * C;
    float* result = out + size_t(blockIdx.x) * C;
    const int misaligned = reinterpret_cast<size_t>(row) / 4 % 4;
    const int head = min(C, (4 - misaligned) % 4), vectors = (C - head) / 4, tail = head + 4 * vectors;
    const float4* body = reinterpret_cast<const float4*>(row + head);

    float sum = 0.0f;
    if (threadIdx.x < head) sum += row[threadIdx.x];
    for (int i = threadIdx.x; i < vectors; i += THREADS) sum += body[i].x + body[i].y + body[i].z + body[i].w;
    for (int i = tail + threadIdx.x; i < C; i += THREADS) sum += row[i];
    const float mean = block_sum(sum, totals) / C;

    auto square = [&](float value) { return (value - mean) * (value - mean); };
    float squares = 0.0f;
    if (threadIdx.x < head) squares += square(row[threadIdx.x]);
    for (int i = threadIdx.x; i < vectors; i += THREADS)
        squares += square(body[i].x) + square(body[i].y) + square(body[i].z) + square(body[i].w);
    for (int i = tail + threadIdx.x; i < C; i += THREADS) squares += square(row[i]);
    const float inverse = rsqrtf(block_sum(squares, totals) / C + eps);

    for (int i = threadIdx.x; i < C; i += THREADS) result[i] = (row[i] - mean) * inverse * weight[i] + bias[i];
}
