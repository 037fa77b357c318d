/* evoengine
name: layernorm_welford_persistent
precision: fp32
summary: a few blocks of four warps walk over the rows, one row a warp, with weight and bias in shared memory; lanes use Welford's recurrence and are merged by shuffles
launches:
  - kernel: normalise_rows
    grid: ["min(ceil_div(N, 4), 4)"]
    block: [128]
    shared: 8 * C
    args: [x, weight, bias, out, N, C, eps]
*/
constexpr int WARPS = 4, LANES = 32;
constexpr unsigned ALL = 0xffffffffu;

struct Welford {
    float mean, m2, count;
};

__device__ __forceinline__ void push(Welford& w, float value) {
    w.count += 1.0f;
    const float delta = value - w.mean;
    w.mean += delta / w.count;
    w.m2 += delta * (value - w.mean);
}

__device__ __forceinline__ Welford merge(const Welford& a, const Welford& b) {
    const float count = a.count + b.count;
    if (count == 0.0f) return a;
    const float delta = b.mean - a.mean, share = b.count / count;
    return {a.mean + delta * share, a.m2 + b.m2 + delta * delta * a.count * share, count};
}

__global__ void __launch_bounds__(WARPS * LANES)
normalise_rows(const float* __restrict__ x, const float* __restrict__ weight, const float* __restrict__ bias,
               float* __restrict__ out, int N, int C, float eps) {
    extern __shared__ float gains[];
    float* shifts = gains + C;
    for (int c = threadIdx.x; c < C; c += blockDim.x) {
        gains[c] = weight[c];
        shifts[c] = bias[c];
    }
    __syncthreads();

    const int warp = threadIdx.x / LANES, lane = threadIdx.x % LANES;
    for (int row = blockIdx.x * WARPS + warp; row < N; row += gridDim.x * WARPS) {
        const float* from = x + size_t(row) * C;
        float* to = out + size_t(row) * C;
        Welford own = {0.0f, 0.0f, 0.0f};
        for (int c = lane; c < C; c += LANES) push(own, from[c]);
#pragma unroll
        for (int offset = LANES / 2; offset > 0; offset /= 2) {
            Welford other;
            other.mean = __shfl_down_sync(ALL, own.mean, offset);
            other.m2 = __shfl_down_sync(ALL, own.m2, offset);
            other.count = __shfl_down_sync(ALL, own.count, offset);
            own = merge(own, other);
        }
        const float mean = __shfl_sync(ALL, own.mean, 0);
        const float variance = __shfl_sync(ALL, own.m2, 0) / C;
        const float inv = 1.0f / sqrtf(variance + eps);
        for (int c = lane; c < C; c += LANES) to[c] = (from[c] - mean) * inv * gains[c] + shifts[c];
    }
}
