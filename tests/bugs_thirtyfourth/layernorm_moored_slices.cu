/* evoengine
name: layernorm_moored_slices
precision: fp32
summary: moments of every slice of a row by one launch, merged and applied by a second one
tunables:
  THREADS: [128, 256, 64]
  SLICES: [4, 8, 2]            # of a row, a power of two
  EACH: [4, 2]                 # elements a thread of the second launch writes
let:
  LENGTH: ceil_div(C, SLICES)
scratch:
  means: {dtype: float32, shape: [N, SLICES]}
  spreads: {dtype: float32, shape: [N, SLICES]}
launches:
  - kernel: measure_slices
    grid: [SLICES, N]
    block: [THREADS]
    args: [x, means, spreads, C, LENGTH]
  - kernel: apply_moments
    grid: ["ceil_div(C, THREADS * EACH)", N]
    block: [THREADS]
    args: [x, weight, bias, means, spreads, out, C, LENGTH, eps]
*/

// Layer normalisation with moments that are merged after Chan, Golub and LeVeque:
// a set of numbers is known by its count, its mean and the sum of its squared
// distances from that mean.

struct Moments {
    float count, mean, spread;

    __device__ static Moments none() { return {0.0f, 0.0f, 0.0f}; }

    __device__ void take(float value) {   // Welford
        count += 1.0f;
        const float before = value - mean;
        mean += before / count;
        spread += before * (value - mean);
    }

    __device__ void merge(const Moments& other) {
        const float total = count + other.count;
        if (total == 0.0f) return;
        const float apart = other.mean - mean;
        const float share = other.count / total;
        spread += other.spread + apart * apart * count * share;
        mean += apart * share;
        count = total;
    }
};

// Merges over groups of WIDTH lanes; lane 0 of each has the result.
template <int WIDTH>
__device__ Moments merge_lanes(Moments m) {
#pragma unroll
    for (int far = WIDTH / 2; far > 0; far >>= 1) {
        Moments other;
        other.count = __shfl_down_sync(0xffffffffu, m.count, far, WIDTH);
        other.mean = __shfl_down_sync(0xffffffffu, m.mean, far, WIDTH);
        other.spread = __shfl_down_sync(0xffffffffu, m.spread, far, WIDTH);
        m.merge(other);
    }
    return m;
}

__global__ void __launch_bounds__(THREADS)
measure_slices(const float* __restrict__ x, float* __restrict__ means, float* __restrict__ spreads,
               int C, int LENGTH) {
    constexpr int WARPS = THREADS / 32;
    __shared__ Moments of_warp[WARPS];

    const int slice = blockIdx.x;
    const size_t row = blockIdx.y;
    const int begin = slice * LENGTH;
    const int end = min(begin + LENGTH, C);

    Moments mine = Moments::none();
    for (int c = begin + threadIdx.x; c < end; c += THREADS) mine.take(x[row * C + c]);
    mine = merge_lanes<32>(mine);

    if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = mine;
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int w = 1; w < WARPS; ++w) mine.merge(of_warp[w]);
        means[row * SLICES + slice] = mine.mean;
        spreads[row * SLICES + slice] = mine.spread;
    }
}

__global__ void __launch_bounds__(THREADS)
apply_moments(const float* __restrict__ x, const float* __restrict__ weight,
              const float* __restrict__ bias, const float* __restrict__ means,
              const float* __restrict__ spreads, float* __restrict__ out,
              int C, int LENGTH, float eps) {
    __shared__ float centre, scale;
    const size_t row = blockIdx.y;

    if (threadIdx.x < 32) {   // every block of a row merges the slices anew: they are few
        const int slice = threadIdx.x % SLICES;
        Moments part;
        part.count = static_cast<float>(max(0, min(LENGTH, C - slice * LENGTH)));
        part.mean = means[row * SLICES + slice];
        part.spread = spreads[row * SLICES + slice];
        part = merge_lanes<SLICES>(part);
        if (threadIdx.x == 0) {
            centre = part.mean;
            scale = 1.0f / sqrtf(part.spread / C + eps);
        }
    }
    __syncthreads();   // centre and scale are known to all

    const int first = blockIdx.x * THREADS * EACH + threadIdx.x;
#pragma unroll
    for (int e = 0; e < EACH; ++e) {
        const int c = first + e * THREADS;
        if (c < C) {
            const float unit = (x[row * C + c] - centre) * scale;
            out[row * C + c] = unit * weight[c] + bias[c];
        }
    }
}
