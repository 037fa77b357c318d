/* evoengine
name: layernorm_grid_barrier
precision: fp32
summary: one launch with a barrier over the whole grid between partial sums and normalisation; as many blocks as are resident at once
tunables:
  THREADS: [512, 256]
scratch:
  partial: {dtype: float32, shape: [N, 4, 2]}
launches:
  - kernel: layernorm
    grid: [SM_COUNT]
    block: [THREADS]
    args: [x, weight, bias, out, partial, N, C, eps]
*/
// Arrivals are never reset: a block waits until the count reaches the next multiple of the number of blocks, so no
// launch depends on the count that it finds.
__device__ unsigned arrivals;

__device__ void grid_barrier() {
    __syncthreads();
    if (threadIdx.x == 0) {
        __threadfence();
        const unsigned mine = atomicAdd(&arrivals, 1u), goal = (mine / gridDim.x + 1) * gridDim.x;
        while ((int)(atomicAdd(&arrivals, 0u) - goal) < 0) __nanosleep(32);
        __threadfence();
    }
    __syncthreads();
}

// A value of the row that is no outlier, the median of three: differences from it have no large common part.
__device__ float origin_of(const float* row, int C) {
    const float a = row[0], b = row[C / 2], c = row[C - 1];
    return fmaxf(fminf(a, b), fminf(fmaxf(a, b), c));
}

// A quarter of a row for each warp at a time: (sum, sum of squares), both of differences from its origin.
__global__ void __launch_bounds__(THREADS)
layernorm(const float* __restrict__ x, const float* __restrict__ weight, const float* __restrict__ bias, float* __restrict__ out,
          float* partial, int N, int C, float eps) {
    const int lane = threadIdx.x % 32, warps = gridDim.x * (THREADS / 32), quarter = (C + 3) / 4;
    for (int piece = blockIdx.x * (THREADS / 32) + threadIdx.x / 32; piece < 4 * N; piece += warps) {
        const float* row = x + size_t(piece / 4) * C;
        const int begin = piece % 4 * quarter, end = min(C, begin + quarter);
        const float origin = origin_of(row, C);
        float a = 0.0f, b = 0.0f;
        for (int i = begin + lane; i < end; i += 32) a += row[i] - origin;
        for (int o = 16; o; o /= 2) a += __shfl_xor_sync(~0u, a, o);
        const float mean = end > begin ? a / (end - begin) : 0.0f;
        for (int i = begin + lane; i < end; i += 32) b += ((row[i] - origin) - mean) * ((row[i] - origin) - mean);
        for (int o = 16; o; o /= 2) b += __shfl_xor_sync(~0u, b, o);
        if (lane == 0) reinterpret_cast<float2*>(partial)[piece] = make_float2(mean, b);
    }
    grid_barrier();
    for (int piece = blockIdx.x * (THREADS / 32) + threadIdx.x / 32; piece < 4 * N; piece += warps) {
        const float2* parts = reinterpret_cast<const float2*>(partial) + piece / 4 * 4;
        const size_t at = size_t(piece / 4) * C;
        float2 part[4];
        float mean = 0.0f, m2 = 0.0f;
        for (int p = 0; p < 4; ++p) {
            part[p] = __ldcg(parts + p);
            mean += part[p].x * max(0, min(C, (p + 1) * quarter) - p * quarter);
        }
        mean /= C;
        for (int p = 0; p < 4; ++p)
            m2 += part[p].y + max(0, min(C, (p + 1) * quarter) - p * quarter) * (part[p].x - mean) * (part[p].x - mean);
        const float rstd = rsqrtf(m2 / C + eps);
        const int begin = piece % 4 * quarter, end = min(C, begin + quarter);
        const float origin = origin_of(x + at, C);
        for (int i = begin + lane; i < end; i += 32) out[at + i] = ((x[at + i] - origin) - mean) * rstd * weight[i] + bias[i];
    }
}
