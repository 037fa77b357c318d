/* evoengine
name: layernorm_two_launches
precision: fp32
summary: blocks take parts of a row and leave mean and squared deviations of each; a second launch merges the parts and normalises
tunables:
  THREADS: [128, 256]
  PART: [512, 1024, 256]       # columns of a part
let:
  PARTS: ceil_div(C, PART)
scratch:
  means: {dtype: float32, shape: [N, PARTS]}
  deviations: {dtype: float32, shape: [N, PARTS]}
launches:
  - kernel: part_statistics
    grid: [PARTS, N]
    block: [THREADS]
    args: [x, means, deviations, C, PARTS]
  - kernel: normalise
    grid: [PARTS, N]
    block: [THREADS]
    args: [x, weight, bias, means, deviations, out, C, PARTS, eps]
*/

// The sum over the block, for every thread; a tree in shared memory.
__device__ __forceinline__ float sum_of_block(float value, float* tree) {
    __syncthreads();   // an earlier sum has been read
    tree[threadIdx.x] = value;
    __syncthreads();
    for (int reach = THREADS / 2; reach >= 1; reach /= 2) {
        if (threadIdx.x < reach) tree[threadIdx.x] += tree[threadIdx.x + reach];
        __syncthreads();
    }
    return tree[0];
}

__global__ void __launch_bounds__(THREADS)
part_statistics(const float* __restrict__ x, float* __restrict__ means,
                float* __restrict__ deviations, int C, int PARTS) {
    __shared__ float tree[THREADS];
    const int first = blockIdx.x * PART;
    const int count = min(PART, C - first);
    const float* part = x + static_cast<size_t>(blockIdx.y) * C + first;

    float sum = 0.0f;
    for (int i = threadIdx.x; i < count; i += THREADS) sum += part[i];
    const float mean = sum_of_block(sum, tree) / count;

    float square = 0.0f, drift = 0.0f;
    for (int i = threadIdx.x; i < count; i += THREADS) {
        const float d = part[i] - mean;
        square += d * d;
        drift += d;
    }
    square = sum_of_block(square, tree);
    drift = sum_of_block(drift, tree) / count;
    if (threadIdx.x == 0) {
        means[blockIdx.y * PARTS + blockIdx.x] = mean + drift;
        deviations[blockIdx.y * PARTS + blockIdx.x] = square;
    }
}

__global__ void __launch_bounds__(THREADS)
normalise(const float* __restrict__ x, const float* __restrict__ weight,
          const float* __restrict__ bias, const float* __restrict__ means,
          const float* __restrict__ deviations, float* __restrict__ out, int C, int PARTS,
          float eps) {
    // every thread merges all parts of its row (Chan et al.): there are few
    float seen = 0.0f, mean = 0.0f, m2 = 0.0f;
    for (int p = 0; p < PARTS; ++p) {
        const float count = static_cast<float>(min(PART, C - p * PART));
        const float delta = means[blockIdx.y * PARTS + p] - mean;
        const float both = seen + count;
        mean += delta * (count / both);
        m2 += deviations[blockIdx.y * PARTS + p] + delta * delta * (seen * count / both);
        seen = both;
    }
    const float inverse = 1.0f / sqrtf(m2 / C + eps);

    const int first = blockIdx.x * PART;
    const int last = min(first + PART, C);
    const size_t row = static_cast<size_t>(blockIdx.y) * C;
    for (int c = first + threadIdx.x; c < last; c += THREADS)
        out[row + c] = (x[row + c] - mean) * inverse * weight[c] + bias[c];
}
