/* evoengine
name: layernorm_last_slice_ends
precision: fp32
summary: four blocks a row leave the sum and the squares of a slice behind, the last to come normalises the row; two launches take half of the rows each with the same scratch
let:
  HALF: ceil_div(N, 2)
  REST: max(1, N - HALF)      # blocks beyond the last row leave at once
  WIDTH: ceil_div(C, 4)
scratch:
  slices: {dtype: float32, shape: [HALF, 4, 2]}
  tickets: {dtype: int32, shape: [HALF], init: 0}
launches:
  - kernel: normalise
    grid: [4, HALF]
    block: [128]
    args: [x, weight, bias, out, slices, tickets, 0, N, C, WIDTH, eps]
  - kernel: normalise
    grid: [4, REST]
    block: [128]
    args: [x, weight, bias, out, slices, tickets, HALF, N, C, WIDTH, eps]
*/

constexpr int THREADS = 128, SLICES = 4;

// Known to all threads of the block.
__device__ __forceinline__ float block_sum(float value, float* shared) {
    for (int step = 16; step > 0; step /= 2) value += __shfl_xor_sync(0xffffffffu, value, step);
    __syncthreads();   // what an earlier call left has been read
    if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = value;
    __syncthreads();
    return shared[0] + shared[1] + shared[2] + shared[3];
}

extern "C" __global__ void __launch_bounds__(THREADS)
normalise(const float* __restrict__ x, const float* __restrict__ weight, const float* __restrict__ bias,
          float* __restrict__ out, float* slices, int* tickets, int first, int N, int C, int width, float eps) {
    __shared__ float shared[THREADS / 32];
    __shared__ int ticket;
    const int row = first + blockIdx.y;
    if (row >= N) return;
    const float* source = x + size_t(row) * C;
    const int begin = min(C, int(blockIdx.x) * width), end = min(C, begin + width), count = end - begin;

    float sum = 0.0f;
    for (int i = begin + threadIdx.x; i < end; i += THREADS) sum += source[i];
    const float mean = count > 0 ? block_sum(sum, shared) / count : 0.0f;
    float squares = 0.0f;
    for (int i = begin + threadIdx.x; i < end; i += THREADS) squares += (source[i] - mean) * (source[i] - mean);
    squares = block_sum(squares, shared);

    float* own = slices + (size_t(blockIdx.y) * SLICES + blockIdx.x) * 2;
    if (threadIdx.x == 0) {
        own[0] = mean;
        own[1] = squares;
        __threadfence();
        ticket = atomicAdd(&tickets[blockIdx.y], 1);
    }
    __syncthreads();
    if (ticket != SLICES - 1) return;
    __threadfence();
    if (threadIdx.x == 0) tickets[blockIdx.y] = 0;   // for the next launch

    const float* all = slices + size_t(blockIdx.y) * SLICES * 2;
    float row_mean = 0.0f, deviations = 0.0f;
    for (int s = 0; s < SLICES; ++s) {
        const int length = max(0, min(width, C - s * width));
        row_mean += __ldcg(all + s * 2) * length / C;
    }
    for (int s = 0; s < SLICES; ++s) {
        const int length = max(0, min(width, C - s * width));
        const float apart = __ldcg(all + s * 2) - row_mean;
        deviations += __ldcg(all + s * 2 + 1) + apart * apart * length;
    }
    const float inverse = rsqrtf(deviations / C + eps);
    for (int i = threadIdx.x; i < C; i += THREADS)
        out[size_t(row) * C + i] = (source[i] - row_mean) * inverse * weight[i] + bias[i];
}
