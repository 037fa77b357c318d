/* evoengine
name: strips
precision: fp32
summary: a warp takes the moments of a strip of a row; a second launch merges them and reads weight and bias once for many rows
tunables:
  THREADS: [256, 128, 512]
  STRIP: [256, 512, 1024]   # columns of which a warp takes the moments
  ROWS: [8, 4, 16]          # rows that share one load of weight and bias
let:
  V: 4 if C % 4 == 0 else 1
  NS: ceil_div(C, STRIP)
scratch:
  mom: {dtype: float32, shape: [N, NS, 4]}
launches:
  - kernel: measure<V>
    grid: ["ceil_div(N * NS, THREADS // WARP_SIZE)"]
    block: [THREADS]
    args: [x, mom, N, C, NS]
  - kernel: apply<V>
    grid: ["ceil_div(C, THREADS * V)", "ceil_div(N, ROWS)"]
    block: [THREADS]
    args: [x, weight, bias, mom, out, N, C, NS, eps]
*/
// Moments of a strip are taken from registers in two passes, so x is read from memory once for them and once more for
// the result. Merging follows Chan, Golub and LeVeque; the mean is kept as two numbers, since the rounding of a large
// mean would be seen in the result.

#define FULL_MASK 0xffffffffu
constexpr int WARPS = THREADS / 32;

template <int V> struct alignas(4 * V) Vec { float f[V]; };

struct Mom {
    float n;        // how many
    float mean;
    float rest;     // what the mean lacks by its rounding
    float m2;       // squared deviations from mean + rest, summed
};

__device__ __forceinline__ Mom merge(const Mom& p, const Mom& q) {
    if (q.n == 0.0f) return p;
    if (p.n == 0.0f) return q;
    Mom r;
    r.n = p.n + q.n;
    const float share = q.n / r.n;
    const float gap = (q.mean - p.mean) + (q.rest - p.rest);
    const float step = fmaf(gap, share, p.rest);
    r.mean = p.mean + step;
    // The rounding error of that sum, after Knuth.
    const float back = r.mean - p.mean;
    r.rest = (p.mean - (r.mean - back)) + (step - back);
    r.m2 = p.m2 + q.m2 + gap * gap * (p.n * share);
    return r;
}

__device__ __forceinline__ float lanes_sum(float s) {
#pragma unroll
    for (int o = 16; o; o >>= 1) s += __shfl_xor_sync(FULL_MASK, s, o);
    return s;
}

__device__ __forceinline__ Mom from_lane_below(const Mom& m, int o) {
    return {__shfl_down_sync(FULL_MASK, m.n, o), __shfl_down_sync(FULL_MASK, m.mean, o),
            __shfl_down_sync(FULL_MASK, m.rest, o), __shfl_down_sync(FULL_MASK, m.m2, o)};
}

template <int V>
__global__ void __launch_bounds__(THREADS)
measure(const float* __restrict__ x, float4* __restrict__ mom, int N, int C, int NS) {
    constexpr int LOADS = STRIP / (32 * V);
    const int lane = threadIdx.x & 31;
    const long long item = (long long)blockIdx.x * WARPS + (threadIdx.x >> 5);
    if (item >= (long long)N * NS) return;   // whole warps
    const long long row = item / NS;
    const int c0 = int(item % NS) * STRIP;
    const int n = min(STRIP, C - c0);
    const float* src = x + row * C + c0;

    float v[LOADS][V];
    float s = 0.0f;
#pragma unroll
    for (int i = 0; i < LOADS; ++i) {
        const int c = (i * 32 + lane) * V;
        Vec<V> t = {};
        if (c < n) t = *reinterpret_cast<const Vec<V>*>(src + c);
#pragma unroll
        for (int j = 0; j < V; ++j) {
            v[i][j] = t.f[j];
            s += t.f[j];
        }
    }
    const float mean = lanes_sum(s) / n;

    float d1 = 0.0f, d2 = 0.0f;
#pragma unroll
    for (int i = 0; i < LOADS; ++i) {
        if ((i * 32 + lane) * V >= n) break;   // zeros stand there, which are no values
#pragma unroll
        for (int j = 0; j < V; ++j) {
            const float d = v[i][j] - mean;
            d1 += d;
            d2 = fmaf(d, d, d2);
        }
    }
    const float rest = lanes_sum(d1) / n;
    const float m2 = lanes_sum(d2) - n * rest * rest;
    if (lane == 0) mom[item] = make_float4(float(n), mean, rest, m2);
}

template <int V>
__global__ void __launch_bounds__(THREADS)
apply(const float* __restrict__ x, const float* __restrict__ weight, const float* __restrict__ bias,
      const float4* __restrict__ mom, float* __restrict__ out, int N, int C, int NS, float eps) {
    __shared__ float sh_mean[ROWS], sh_rest[ROWS], sh_inv[ROWS];
    const int lane = threadIdx.x & 31;
    const int r0 = blockIdx.y * ROWS;
    const int rows = min(ROWS, N - r0);

    for (int r = threadIdx.x >> 5; r < rows; r += WARPS) {
        const float4* strips = mom + (long long)(r0 + r) * NS;
        Mom m = {0.0f, 0.0f, 0.0f, 0.0f};
        for (int s = lane; s < NS; s += 32) {
            const float4 t = strips[s];
            m = merge(m, {t.x, t.y, t.z, t.w});
        }
#pragma unroll
        for (int o = 16; o; o >>= 1) m = merge(m, from_lane_below(m, o));
        if (lane == 0) {
            sh_mean[r] = m.mean;
            sh_rest[r] = m.rest;
            sh_inv[r] = 1.0f / sqrtf(fmaxf(m.m2, 0.0f) / C + eps);
        }
    }
    __syncthreads();

    const int c = (blockIdx.x * THREADS + threadIdx.x) * V;
    if (c >= C) return;
    const Vec<V> w = *reinterpret_cast<const Vec<V>*>(weight + c);
    const Vec<V> b = *reinterpret_cast<const Vec<V>*>(bias + c);
    for (int r = 0; r < rows; ++r) {
        const long long at = (long long)(r0 + r) * C + c;
        const Vec<V> t = *reinterpret_cast<const Vec<V>*>(x + at);
        Vec<V> y;
#pragma unroll
        for (int j = 0; j < V; ++j) y.f[j] = fmaf(((t.f[j] - sh_mean[r]) - sh_rest[r]) * sh_inv[r], w.f[j], b.f[j]);
        *reinterpret_cast<Vec<V>*>(out + at) = y;
    }
}
