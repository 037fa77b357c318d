/* evoengine
name: layernorm_prefetched_rows
precision: fp32
summary: a block walks over rows; while one is normalised in shared memory, the next arrives in another buffer by cp.async
tunables:
  ROWS: [4, 2, 8]
let:
  V: 4 if C % 4 == 0 else 1
launches:
  - kernel: layernorm<V>
    grid: ["ceil_div(N, ROWS)"]
    block: [256]
    shared: 2 * 4 * round_up(C, 4)
    args: [x, weight, bias, out, N, C, eps]
*/
constexpr int THREADS = 256, WARPS = THREADS / 32;

template <int V> __device__ __forceinline__ void copy_async(float* to, const float* from) {
    const unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(to));
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(address), "l"(from), "n"(4 * V));
}

__device__ __forceinline__ float block_sum(float value, float* parts) {
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    for (int step = 16; step > 0; step /= 2) value += __shfl_down_sync(~0u, value, step);
    __syncthreads();  // the sum before this one has been read
    if (lane == 0) parts[warp] = value;
    __syncthreads();
    if (warp == 0) {
        value = lane < WARPS ? parts[lane] : 0.0f;
        for (int step = WARPS / 2; step > 0; step /= 2) value += __shfl_down_sync(~0u, value, step);
        if (lane == 0) parts[0] = value;
    }
    __syncthreads();
    return parts[0];
}

template <int V>
__global__ void __launch_bounds__(THREADS)
layernorm(const float* __restrict__ x, const float* __restrict__ weight, const float* __restrict__ bias,
          float* __restrict__ out, int N, int C, float eps) {
    extern __shared__ __align__(16) float buffers[];
    __shared__ float parts[WARPS];
    const int pitch = (C + 3) / 4 * 4;
    auto fetch = [&](int buffer, int row) {
        for (int i = threadIdx.x * V; i < C; i += THREADS * V)
            copy_async<V>(buffers + buffer * pitch + i, x + size_t(row) * C + i);
        asm volatile("cp.async.commit_group;");
    };
    int buffer = 0;
    fetch(buffer, blockIdx.x);
    for (int row = blockIdx.x; row < N; row += gridDim.x) {
        const int next = row + gridDim.x;
        if (next < N) {
            fetch(buffer ^ 1, next);
            asm volatile("cp.async.wait_group 1;");
        } else {
            asm volatile("cp.async.wait_group 0;");
        }
        __syncthreads();
        const float* values = buffers + buffer * pitch;
        float sum = 0.0f;
        for (int i = threadIdx.x; i < C; i += THREADS) sum += values[i];
        const float mean = block_sum(sum, parts) / C;
        float squares = 0.0f;
        for (int i = threadIdx.x; i < C; i += THREADS) {
            const float distance = values[i] - mean;
            squares = fmaf(distance, distance, squares);
        }
        const float inverse = 1.0f / sqrtf(block_sum(squares, parts) / C + eps);
        float* result = out + size_t(row) * C;
        for (int i = threadIdx.x; i < C; i += THREADS)
            result[i] = fmaf((values[i] - mean) * inverse, weight[i], bias[i]);
        __syncthreads();
        buffer ^= 1;
    }
}
