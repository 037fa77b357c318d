/* evoengine
name: layernorm_split_rows
precision: fp32
summary: a row is split among several blocks; partial (count, mean, M2) in scratch, merged by a second launch
tunables:
  SPLITS: [4, 2, 8]
  THREADS: [128, 256]
let:
  CHUNK: ceil_div(C, SPLITS)
scratch:
  partial: {dtype: float32, shape: [N, SPLITS, 4]}    # one more than needed, for aligned 16-byte stores
launches:
  - kernel: partial_statistics
    grid: [SPLITS, N]
    block: [THREADS]
    args: [x, partial, C, CHUNK]
  - kernel: merge_and_normalise
    grid: [SPLITS, N]
    block: [THREADS]
    args: [x, partial, weight, bias, out, C, CHUNK, eps]
*/
__device__ float all_sum(float v) {
    __shared__ float warp_sum[THREADS / 32];
    for (int o = 16; o > 0; o >>= 1) v += __shfl_xor_sync(0xffffffffu, v, o);
    __syncthreads();
    if (threadIdx.x % 32 == 0) warp_sum[threadIdx.x / 32] = v;
    __syncthreads();
    float total = 0.0f;
    for (int w = 0; w < THREADS / 32; w++) total += warp_sum[w];
    return total;
}

// A value of the row that is no outlier, the median of three: differences from it have no large common part.
__device__ float origin_of(const float* row, int C) {
    const float a = row[0], b = row[C / 2], c = row[C - 1];
    return fmaxf(fminf(a, b), fminf(fmaxf(a, b), c));
}

__global__ void partial_statistics(const float* __restrict__ x, float* __restrict__ partial, int C, int chunk) {
    const int begin = min(C, int(blockIdx.x) * chunk), end = min(C, begin + chunk), count = end - begin;
    const float* row = x + (size_t)blockIdx.y * C;
    const float origin = origin_of(row, C);
    float sum = 0.0f;
    for (int i = begin + threadIdx.x; i < end; i += THREADS) sum += row[i] - origin;
    const float mean = count > 0 ? all_sum(sum) / count : 0.0f;   // relative to the origin; count is the block's
    float squares = 0.0f;
    for (int i = begin + threadIdx.x; i < end; i += THREADS) {
        const float d = (row[i] - origin) - mean;
        squares += d * d;
    }
    const float m2 = all_sum(squares);
    if (threadIdx.x == 0)
        reinterpret_cast<float4*>(partial)[blockIdx.y * SPLITS + blockIdx.x] = make_float4(float(count), mean, m2, 0.0f);
}

__global__ void merge_and_normalise(const float* __restrict__ x, const float* __restrict__ partial, const float* __restrict__ weight,
                                    const float* __restrict__ bias, float* __restrict__ out, int C, int chunk, float eps) {
    const float4* parts = reinterpret_cast<const float4*>(partial) + blockIdx.y * SPLITS;
    float mean = 0.0f;
#pragma unroll
    for (int s = 0; s < SPLITS; s++) mean += parts[s].x * parts[s].y;
    mean /= C;
    float m2 = 0.0f;
#pragma unroll
    for (int s = 0; s < SPLITS; s++) {
        const float d = parts[s].y - mean;
        m2 += parts[s].z + parts[s].x * d * d;
    }
    const float rstd = 1.0f / sqrtf(m2 / C + eps);
    const float* row = x + (size_t)blockIdx.y * C;
    const float origin = origin_of(row, C);
    const int begin = blockIdx.x * chunk, end = min(C, begin + chunk);
    for (int i = begin + threadIdx.x; i < end; i += THREADS)
        out[(size_t)blockIdx.y * C + i] = ((row[i] - origin) - mean) * rstd * weight[i] + bias[i];
}
