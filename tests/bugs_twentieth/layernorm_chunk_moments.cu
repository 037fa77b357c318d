/* evoengine
name: layernorm_chunk_moments
precision: fp32
summary: a warp a chunk of a row takes Welford's moments; a second launch merges them and normalises
tunables:
  WARPS: [8, 4, 16]            # warps to a block of the first launch
  CHUNK: [256, 512]            # columns to a warp
  APPLY: [256, 128]            # threads to a block of the second launch
let:
  CHUNKS: ceil_div(C, CHUNK)
  V: 4 if C % 4 == 0 else 1
require:
  - ceil_div(C, CHUNK) <= WARP_SIZE
scratch:
  moments: {dtype: float32, shape: [N, CHUNKS, 4]}
launches:
  - kernel: chunkMoments
    grid: ["ceil_div(N * CHUNKS, WARPS)"]
    block: [WARP_SIZE, WARPS]
    args: [x, moments, N, C, CHUNKS]
  - kernel: applyNorm<V>
    grid: [N]
    block: [APPLY]
    args: [x, weight, bias, moments, out, C, CHUNKS, eps]
*/

// Layer normalisation of the rows of x [N, C]. All moments are of x minus a pivot, the middle one of
// three elements of the row, so that a mean that is large beside the spread costs no accuracy.

constexpr unsigned kAll = 0xffffffffu;

template <int V> struct alignas(4 * V) Vec { float at[V]; };

struct Moments {
    float count, mean, m2;   // m2: the sum of the squared deviations from the mean

    __device__ void push(float v) {
        count += 1.0f;
        const float delta = v - mean;
        mean += delta / count;
        m2 += delta * (v - mean);
    }

    // Chan's rule for two sets of values.
    __device__ void merge(const Moments& o) {
        const float n = count + o.count;
        if (n == 0.0f) return;
        const float delta = o.mean - mean;
        const float share = o.count / n;
        mean += delta * share;
        m2 += o.m2 + delta * delta * count * share;
        count = n;
    }
};

// The moments of all lanes, in lane 0.
__device__ Moments mergeWarp(Moments m) {
#pragma unroll
    for (int d = 16; d >= 1; d /= 2) {
        Moments o;
        o.count = __shfl_down_sync(kAll, m.count, d);
        o.mean = __shfl_down_sync(kAll, m.mean, d);
        o.m2 = __shfl_down_sync(kAll, m.m2, d);
        m.merge(o);
    }
    return m;
}

__device__ __forceinline__ float pivotOf(const float* row, int C) {
    const float a = row[0], b = row[C / 2], c = row[C - 1];
    return fmaxf(fminf(a, b), fminf(fmaxf(a, b), c));
}

extern "C" __global__ void __launch_bounds__(32 * WARPS)
chunkMoments(const float* __restrict__ x, float4* __restrict__ moments, int N, int C, int chunks) {
    const int item = blockIdx.x * WARPS + threadIdx.y;
    if (item >= N * chunks) return;
    const int r = item / chunks, chunk = item % chunks;
    const float* row = x + (long long)r * C;
    const float pivot = pivotOf(row, C);
    const int stop = min((chunk + 1) * CHUNK, C);

    Moments m = {0.0f, 0.0f, 0.0f};
    for (int c = chunk * CHUNK + threadIdx.x; c < stop; c += 32) m.push(row[c] - pivot);
    m = mergeWarp(m);
    if (threadIdx.x == 0) moments[item] = make_float4(m.count, m.mean, m.m2, pivot);
}

template <int V>
__global__ void __launch_bounds__(APPLY)
applyNorm(const float* __restrict__ x, const float* __restrict__ weight, const float* __restrict__ bias,
          const float4* __restrict__ moments, float* __restrict__ out, int C, int chunks, float eps) {
    __shared__ float3 rowStats;
    const long long r = blockIdx.x;
    if (threadIdx.x < 32) {
        Moments m = {0.0f, 0.0f, 0.0f};
        float pivot = 0.0f;
        if (threadIdx.x < chunks) {
            const float4 part = moments[r * chunks + threadIdx.x];
            m = Moments{part.x, part.y, part.z};
            pivot = part.w;
        }
        m = mergeWarp(m);
        if (threadIdx.x == 0) rowStats = make_float3(pivot, m.mean, 1.0f / sqrtf(m.m2 / m.count + eps));
    }
    __syncthreads();
    const float pivot = rowStats.x, mean = rowStats.y, rstd = rowStats.z;

    const Vec<V>* src = reinterpret_cast<const Vec<V>*>(x + r * C);
    const Vec<V>* gamma = reinterpret_cast<const Vec<V>*>(weight);
    const Vec<V>* beta = reinterpret_cast<const Vec<V>*>(bias);
    Vec<V>* dst = reinterpret_cast<Vec<V>*>(out + r * C);
    for (int i = threadIdx.x; i < C / V; i += APPLY) {
        const Vec<V> v = src[i], g = gamma[i], b = beta[i];
        Vec<V> y;
#pragma unroll
        for (int j = 0; j < V; ++j) y.at[j] = (v.at[j] - pivot - mean) * rstd * g.at[j] + b.at[j];
        dst[i] = y;
    }
}
