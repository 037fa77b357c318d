/* evoengine
name: layernorm_row_quarters
precision: fp32
summary: four blocks share a row; a first launch leaves mean and squared deviations of every quarter, a second one merges them and normalises
let:
  CHUNK: ceil_div(C, 4)
  CHUNKS: ceil_div(C, CHUNK)
scratch:
  means: {dtype: float32, shape: [N, CHUNKS]}
  squares: {dtype: float32, shape: [N, CHUNKS]}
launches:
  - kernel: quarter_moments
    grid: [CHUNKS, N]
    block: [64]
    shared: 4 * CHUNK
    args: [x, means, squares, C, CHUNK]
  - kernel: normalise_quarter
    grid: [CHUNKS, N]
    block: [128]
    args: [x, weight, bias, means, squares, out, C, CHUNK, eps]
*/
__device__ float sum_of_64(float value, float* room) {
    for (int mask = 16; mask > 0; mask >>= 1) value += __shfl_xor_sync(0xffffffff, value, mask);
    __syncthreads();
    if (threadIdx.x % 32 == 0) room[threadIdx.x / 32] = value;
    __syncthreads();
    return room[0] + room[1];
}

__global__ void __launch_bounds__(64)
quarter_moments(const float* __restrict__ x, float* __restrict__ means, float* __restrict__ squares, int C, int chunk) {
    extern __shared__ float values[];
    __shared__ float room[2];
    const int begin = blockIdx.x * chunk, count = min(chunk, C - begin);
    const float* from = x + (size_t)blockIdx.y * C + begin;

    float sum = 0.0f;
    for (int i = threadIdx.x; i < count; i += 64) sum += values[i] = from[i];
    const float mean = sum_of_64(sum, room) / count;
    float square = 0.0f;
    for (int i = threadIdx.x; i < count; i += 64) {
        const float d = values[i] - mean;
        square += d * d;
    }
    square = sum_of_64(square, room);
    if (threadIdx.x == 0) {
        means[blockIdx.y * gridDim.x + blockIdx.x] = mean;
        squares[blockIdx.y * gridDim.x + blockIdx.x] = square;
    }
}

__global__ void __launch_bounds__(128)
normalise_quarter(const float* __restrict__ x, const float* __restrict__ weight, const float* __restrict__ bias,
                  const float* __restrict__ means, const float* __restrict__ squares, float* __restrict__ out, int C, int chunk,
                  float eps) {
    const int row = blockIdx.y, chunks = gridDim.x;
    float mean = 0.0f;
    for (int i = 0; i < chunks; ++i) {
        const int count = min(chunk, C - i * chunk);
        mean += means[row * chunks + i] * count;
    }
    mean /= C;
    float total = 0.0f;
    for (int i = 0; i < chunks; ++i) {
        const int count = min(chunk, C - i * chunk);
        const float apart = means[row * chunks + i] - mean;
        total += squares[row * chunks + i] + apart * apart * count;
    }
    const float inverse = rsqrtf(total / C + eps);

    const int begin = blockIdx.x * chunk, end = min(C, begin + chunk);
    for (int c = begin + threadIdx.x; c < end; c += 128) {
        const size_t at = (size_t)row * C + c;
        out[at] = (x[at] - mean) * inverse * weight[c] + bias[c];
    }
}
