/* evoengine
name: layernorm_pivot_slices
precision: fp32
summary: moments of slices of a row in one launch, merged by each warp of a second one that normalises
tunables:
  WARPS: [4, 8, 2]          # of a block that takes the moments of a slice
  SLICES: [4, 2, 8]
  NORM_ROWS: [4, 2, 8]      # rows of a block that normalises, a warp each
  STEPS: [4, 2, 8]          # vectors of a lane there
let:
  W: 4 if C % 4 == 0 else 1
  SLICE: "round_up(ceil_div(C, SLICES), 4)"
require:
  - SLICES <= WARP_SIZE
scratch:
  moments: {dtype: float32, shape: [N, SLICES, 2]}    # mean and sum of squared deviations
launches:
  - kernel: slice_moments<W>
    grid: [SLICES, N]
    block: ["WARPS * WARP_SIZE"]
    args: [x, moments, C, SLICE]
  - kernel: normalise<W>
    grid: ["ceil_div(C, 32 * W * STEPS)", "ceil_div(N, NORM_ROWS)"]
    block: [32, NORM_ROWS]
    args: [x, weight, bias, moments, out, N, C, SLICE, eps]
*/

// All moments are those of x less the first value of its row. A mean that is large beside the spread
// is gone by that, and the small one that is left has a small error of rounding.

template <int W> struct alignas(4 * W) Vec { float e[W]; };

struct Moments {
    float n, mean, m2;

    __device__ __forceinline__ void push(float value) {
        n += 1.0f;
        const float before = value - mean;
        mean += before / n;
        m2 += before * (value - mean);
    }

    // By the formula of Chan, Golub and LeVeque.
    __device__ __forceinline__ void merge(const Moments& o) {
        const float total = n + o.n;
        if (total == 0.0f) return;
        const float part = o.n / total;
        const float delta = o.mean - mean;
        mean += delta * part;
        m2 += o.m2 + delta * delta * n * part;
        n = total;
    }
};

// The merged moments of all lanes, in the first one.
__device__ __forceinline__ Moments warp_merged(Moments a) {
    for (int down = 16; down > 0; down >>= 1) {
        const Moments b = {__shfl_down_sync(~0u, a.n, down), __shfl_down_sync(~0u, a.mean, down),
                           __shfl_down_sync(~0u, a.m2, down)};
        a.merge(b);
    }
    return a;
}

template <int W>
__global__ void __launch_bounds__(WARPS * 32)
slice_moments(const float* __restrict__ x, float* __restrict__ moments, int C, int slice_size) {
    __shared__ Moments of_warp[WARPS];
    const int slice = blockIdx.x, row = blockIdx.y;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const float* __restrict__ source = x + static_cast<size_t>(row) * C;
    const float pivot = source[0];
    const int start = slice * slice_size, stop = min(start + slice_size, C);

    Moments own = {0.0f, 0.0f, 0.0f};
    for (int c = start + W * threadIdx.x; c < stop; c += W * WARPS * 32) {
        const Vec<W> v = *reinterpret_cast<const Vec<W>*>(source + c);
#pragma unroll
        for (int j = 0; j < W; ++j) own.push(v.e[j] - pivot);
    }
    own = warp_merged(own);
    if (lane == 0) of_warp[warp] = own;
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int k = 1; k < WARPS; ++k) own.merge(of_warp[k]);
        float* target = moments + (static_cast<size_t>(row) * SLICES + slice) * 2;
        target[0] = own.mean;
        target[1] = own.m2;
    }
}

template <int W>
__global__ void __launch_bounds__(NORM_ROWS * 32)
normalise(const float* __restrict__ x, const float* __restrict__ weight, const float* __restrict__ bias,
          const float* __restrict__ moments, float* __restrict__ out, int N, int C, int slice_size, float eps) {
    const int row = blockIdx.y * NORM_ROWS + threadIdx.y, lane = threadIdx.x;
    if (row >= N) return;

    Moments m = {0.0f, 0.0f, 0.0f};
    if (lane < SLICES) {
        const float2 stored = reinterpret_cast<const float2*>(moments)[static_cast<size_t>(row) * SLICES + lane];
        const int count = max(0, min(slice_size, C - lane * slice_size));   // the last slices may be short or empty
        m = {static_cast<float>(count), stored.x, stored.y};
    }
    m = warp_merged(m);
    const float mean = __shfl_sync(~0u, m.mean, 0);
    const float spread = __shfl_sync(~0u, m.m2, 0);
    const float inv_std = 1.0f / sqrtf(spread / C + eps);

    const float* __restrict__ source = x + static_cast<size_t>(row) * C;
    float* __restrict__ target = out + static_cast<size_t>(row) * C;
    const float pivot = source[0];
    const int left = blockIdx.x * 32 * W * STEPS;
#pragma unroll
    for (int s = 0; s < STEPS; ++s) {
        const int c = left + (s * 32 + lane) * W;
        if (c >= C) break;
        const Vec<W> v = *reinterpret_cast<const Vec<W>*>(source + c);
        const Vec<W> scale = *reinterpret_cast<const Vec<W>*>(weight + c);
        const Vec<W> shift = *reinterpret_cast<const Vec<W>*>(bias + c);
        Vec<W> y;
#pragma unroll
        for (int j = 0; j < W; ++j) y.e[j] = ((v.e[j] - pivot) - mean) * inv_std * scale.e[j] + shift.e[j];
        *reinterpret_cast<Vec<W>*>(target + c) = y;
    }
}
