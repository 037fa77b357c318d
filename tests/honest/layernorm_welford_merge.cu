/* evoengine
name: layernorm_welford_merge
precision: fp32
summary: Welford statistics in each thread, merged pairwise by shuffles and then through shared memory; vector loads
tunables:
  THREADS: [256, 128, 512]
  VEC: [4, 2]
let:
  V: VEC if C % VEC == 0 else 1
require:
  - THREADS % WARP_SIZE == 0
launches:
  - kernel: layernorm<V>
    grid: [N]
    block: [THREADS]
    args: [x, weight, bias, out, C, eps]
*/
template <typename T, int SIZE>
struct alignas(sizeof(T) * SIZE) Vector {
    T val[SIZE];
};

struct Stats {
    float mean, m2, count;

    __device__ void add(float value) {
        count += 1.0f;
        const float delta = value - mean;
        mean += delta * (1.0f / count);
        m2 += delta * (value - mean);
    }
    // The statistics of both sets together.
    __device__ void merge(const Stats& other) {
        if (other.count == 0.0f) return;
        const float total = count + other.count, delta = other.mean - mean, share = other.count / total;
        mean += delta * share;
        m2 += other.m2 + delta * delta * count * share;
        count = total;
    }
    __device__ Stats down(int lanes) const {
        return {__shfl_down_sync(~0u, mean, lanes), __shfl_down_sync(~0u, m2, lanes), __shfl_down_sync(~0u, count, lanes)};
    }
};

// A value of the row that is no outlier, the median of three: differences from it have no large common part.
__device__ float origin_of(const float* row, int C) {
    const float a = row[0], b = row[C / 2], c = row[C - 1];
    return fmaxf(fminf(a, b), fminf(fmaxf(a, b), c));
}

template <int V>
__global__ void layernorm(const float* __restrict__ x, const float* __restrict__ weight, const float* __restrict__ bias,
                          float* __restrict__ out, int C, float eps) {
    using Vec = Vector<float, V>;
    __shared__ Stats warps[THREADS / 32];
    const Vec* in = reinterpret_cast<const Vec*>(x + size_t(blockIdx.x) * C);
    Vec* result = reinterpret_cast<Vec*>(out + size_t(blockIdx.x) * C);
    const float origin = origin_of(x + size_t(blockIdx.x) * C, C);   // the running mean then has no large part to round

    Stats mine{0.0f, 0.0f, 0.0f};
    for (int i = threadIdx.x; i < C / V; i += THREADS) {
        const Vec v = in[i];
#pragma unroll
        for (int j = 0; j < V; ++j) mine.add(v.val[j] - origin);
    }
#pragma unroll
    for (int lanes = 16; lanes > 0; lanes >>= 1) mine.merge(mine.down(lanes));
    if ((threadIdx.x & 31) == 0) warps[threadIdx.x >> 5] = mine;
    __syncthreads();
    Stats row = warps[0];
    for (int w = 1; w < THREADS / 32; ++w) row.merge(warps[w]);

    const float rstd = rsqrtf(row.m2 / C + eps);
    for (int i = threadIdx.x; i < C / V; i += THREADS) {
        const Vec v = in[i], g = reinterpret_cast<const Vec*>(weight)[i], b = reinterpret_cast<const Vec*>(bias)[i];
        Vec y;
#pragma unroll
        for (int j = 0; j < V; ++j) y.val[j] = fmaf(((v.val[j] - origin) - row.mean) * rstd, g.val[j], b.val[j]);
        result[i] = y;
    }
}
