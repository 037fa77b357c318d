/* evoengine
name: layernorm_pair_of_rows
precision: fp32
summary: a block takes two rows, four warps each; the rows are read once and stay in shared memory
launches:
  - kernel: normalise
    grid: ["ceil_div(N, 2)"]
    block: [128, 2]
    shared: 8 * C
    args: [x, weight, bias, out, N, C, eps]
*/

// The sum over the 128 threads of a row, known to all of them.
__device__ __forceinline__ float row_sum(float value, float* parts) {
    for (int step = 16; step > 0; step >>= 1) value += __shfl_xor_sync(0xffffffffu, value, step);
    __syncthreads();   // what was there has been read
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = value;
    __syncthreads();
    float sum = 0.0f;
    for (int warp = 0; warp < 4; ++warp) sum += parts[warp];
    return sum;
}

__global__ void __launch_bounds__(256)
normalise(const float* __restrict__ x, const float* __restrict__ weight, const float* __restrict__ bias, float* __restrict__ out,
          int N, int C, float eps) {
    extern __shared__ float rows[];
    __shared__ float parts[2][4];
    const int row = blockIdx.x * 2 + threadIdx.y;
    const bool inside = row < N;   // a row that is not there still comes to every barrier
    float* mine = rows + threadIdx.y * C;
    float sum = 0.0f;
    for (int i = threadIdx.x; i < C; i += 128) {
        const float value = inside ? x[size_t(row) * C + i] : 0.0f;
        mine[i] = value;
        sum += value;
    }
    const float mean = row_sum(sum, parts[threadIdx.y]) / C;

    float off = 0.0f;   // what rounding took from the mean
    for (int i = threadIdx.x; i < C; i += 128) off += mine[i] - mean;
    off = row_sum(off, parts[threadIdx.y]) / C;

    float squares = 0.0f;
    for (int i = threadIdx.x; i < C; i += 128) {
        const float d = mine[i] - mean - off;
        squares += d * d;
    }
    const float variance = row_sum(squares, parts[threadIdx.y]) / C;
    const float inverse = 1.0f / sqrtf(variance + eps);
    if (!inside) return;
    for (int i = threadIdx.x; i < C; i += 128) {
        const float d = mine[i] - mean - off;
        out[size_t(row) * C + i] = d * inverse * weight[i] + bias[i];
    }
}
