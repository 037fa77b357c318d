/* evoengine
name: layernorm_slabs_then_columns
precision: fp32
summary: a warp finds the moments of a slab of a row; a second launch joins the slabs and normalises columns
tunables:
  SLABS: [4, 2, 8]         # parts of a row, each of one warp
  WARPS: [8, 4]            # warps of a block of the first launch
  ROWS: [8, 4]             # rows of a block of the second launch
  COLUMN_THREADS: [128, 64, 256]
let:
  V: 4 if C % 4 == 0 else 1
  SPAN: "round_up(ceil_div(C, SLABS), V)"
require:
  - ROWS * SLABS <= COLUMN_THREADS
scratch:
  moments: {dtype: float32, shape: [N, SLABS, 2]}
launches:
  - kernel: slab_moments<V>
    grid: ["ceil_div(N * SLABS, WARPS)"]
    block: ["WARP_SIZE * WARPS"]
    args: [x, moments, N, C, SPAN]
  - kernel: apply_columns<V>
    grid: ["ceil_div(C, V * COLUMN_THREADS)", "ceil_div(N, ROWS)"]
    block: [COLUMN_THREADS]
    args: [x, weight, bias, moments, out, N, C, SPAN, eps]
*/

// All moments are those of the differences from the first element of the row, the pivot, so that a
// mean far from zero costs no digits. A slab at the end of a row may be shorter than SPAN, or empty.

template <int V> struct alignas(4 * V) Vec { float at[V]; };

struct Moments {
    float n = 0.0f, mean = 0.0f, m2 = 0.0f;

    // Welford's update.
    __device__ __forceinline__ void take(float value) {
        n += 1.0f;
        const float delta = value - mean;
        mean += delta / n;
        m2 += delta * (value - mean);
    }

    // Chan's formula for the moments of two sets together.
    __device__ __forceinline__ void join(const Moments& o) {
        if (o.n == 0.0f) return;
        const float total = n + o.n, delta = o.mean - mean;
        mean += delta * (o.n / total);
        m2 += o.m2 + delta * delta * (n * o.n / total);
        n = total;
    }
};

// Lane 0 of each group of `width` lanes gets the moments of the group.
template <int width> __device__ __forceinline__ void join_lanes(Moments& m) {
#pragma unroll
    for (int step = width / 2; step > 0; step /= 2) {
        Moments o;
        o.n = __shfl_down_sync(0xffffffffu, m.n, step, width);
        o.mean = __shfl_down_sync(0xffffffffu, m.mean, step, width);
        o.m2 = __shfl_down_sync(0xffffffffu, m.m2, step, width);
        m.join(o);
    }
}

template <int V>
__global__ void __launch_bounds__(32 * WARPS)
slab_moments(const float* __restrict__ x, float2* __restrict__ moments, int N, int C, int span) {
    const int lane = threadIdx.x % 32;
    const int job = blockIdx.x * WARPS + threadIdx.x / 32;
    if (job >= N * SLABS) return;   // a whole warp
    const int row = job / SLABS, slab = job % SLABS;
    const float* line = x + static_cast<long long>(row) * C;
    const float pivot = line[0];
    const int end = min((slab + 1) * span, C);

    Moments m;
    for (int c = slab * span + lane * V; c < end; c += 32 * V) {
        const Vec<V> pack = *reinterpret_cast<const Vec<V>*>(line + c);
#pragma unroll
        for (int j = 0; j < V; ++j) m.take(pack.at[j] - pivot);
    }
    join_lanes<32>(m);
    if (lane == 0) moments[job] = make_float2(m.mean, m.m2);
}

struct RowStats { float pivot, shift, scale; };

template <int V>
__global__ void __launch_bounds__(COLUMN_THREADS)
apply_columns(const float* __restrict__ x, const float* __restrict__ weight, const float* __restrict__ bias,
              const float2* __restrict__ moments, float* __restrict__ out, int N, int C, int span, float eps) {
    __shared__ RowStats stats[ROWS];
    const int top = blockIdx.y * ROWS, rows = min(ROWS, N - top);

    // One thread a slab; whole warps take part in the shuffles.
    if (threadIdx.x < (ROWS * SLABS + 31) / 32 * 32) {
        const int r = threadIdx.x / SLABS, slab = threadIdx.x % SLABS;
        Moments m;
        if (r < rows) {
            const float2 part = moments[(top + r) * SLABS + slab];
            m.n = max(0, min(span, C - slab * span));
            m.mean = part.x;
            m.m2 = part.y;
        }
        join_lanes<SLABS>(m);
        if (r < rows && slab == 0)
            stats[r] = {x[static_cast<long long>(top + r) * C], m.mean, 1.0f / sqrtf(m.m2 / C + eps)};
    }
    __syncthreads();   // the rows are known

    const int column = (blockIdx.x * COLUMN_THREADS + threadIdx.x) * V;
    if (column >= C) return;
    const Vec<V> w = *reinterpret_cast<const Vec<V>*>(weight + column);
    const Vec<V> b = *reinterpret_cast<const Vec<V>*>(bias + column);
    for (int r = 0; r < rows; ++r) {
        const RowStats s = stats[r];
        const long long at = static_cast<long long>(top + r) * C + column;
        Vec<V> y = *reinterpret_cast<const Vec<V>*>(x + at);
#pragma unroll
        for (int j = 0; j < V; ++j) y.at[j] = fmaf((y.at[j] - s.pivot - s.shift) * s.scale, w.at[j], b.at[j]);
        *reinterpret_cast<Vec<V>*>(out + at) = y;
    }
}
