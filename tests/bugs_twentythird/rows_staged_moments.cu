/* evoengine
name: rows_staged_moments
precision: fp32
summary: rows staged in shared memory one ahead with cp.async; moments about a pivot, merged pairwise
tunables:
  NUM_THREADS: [256, 128, 512]
  ROWS: [4, 2, 8]              # rows that a block takes, a grid apart
let:
  VEC: 4 if C % 4 == 0 else 1
  PITCH: round_up(C, 4)
  BLOCKS: ceil_div(N, ROWS)
require:
  - 8 * PITCH <= MAX_SHARED_BYTES
launches:
  - kernel: layer_norm_rows<VEC>
    grid: [BLOCKS]
    block: [NUM_THREADS]
    shared: 8 * PITCH
    args: [x, weight, bias, out, N, C, PITCH, eps]
*/

#define FULL_MASK 0xffffffffu
constexpr int kWarps = NUM_THREADS / 32;

template <int V> struct __align__(4 * V) vec_t { float v[V]; };

// Count, mean and sum of squared deviations of a part of a row.
struct Moments {
    float n, mean, m2;

    __device__ __forceinline__ void push(float value) {
        n += 1.0f;
        const float delta = value - mean;
        mean += delta / n;
        m2 += delta * (value - mean);
    }

    // Two parts become one; either may be empty, both as well.
    __device__ __forceinline__ void merge(const Moments& o) {
        const float total = n + o.n;
        const float share = total > 0.0f ? o.n / total : 0.0f;
        const float delta = o.mean - mean;
        mean += delta * share;
        m2 += o.m2 + delta * delta * n * share;
        n = total;
    }
};

__device__ __forceinline__ Moments merge_lanes(Moments m) {
#pragma unroll
    for (int off = 16; off; off >>= 1) {
        Moments o;
        o.n = __shfl_down_sync(FULL_MASK, m.n, off);
        o.mean = __shfl_down_sync(FULL_MASK, m.mean, off);
        o.m2 = __shfl_down_sync(FULL_MASK, m.m2, off);
        m.merge(o);
    }
    return m;   // complete in lane 0
}

__device__ __forceinline__ float add_lanes(float s) {
#pragma unroll
    for (int off = 16; off; off >>= 1) s += __shfl_xor_sync(FULL_MASK, s, off);
    return s;
}

template <int V>
__device__ __forceinline__ void stage_row(float* dst, const float* src, int C) {
    for (int c = threadIdx.x * V; c < C; c += NUM_THREADS * V) {
        const unsigned int to = static_cast<unsigned int>(__cvta_generic_to_shared(dst + c));
        asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(to), "l"(src + c), "n"(4 * V) : "memory");
    }
}

__device__ __forceinline__ void close_group() { asm volatile("cp.async.commit_group;" ::: "memory"); }

template <int V>
__global__ void __launch_bounds__(NUM_THREADS)
layer_norm_rows(const float* __restrict__ x, const float* __restrict__ weight, const float* __restrict__ bias,
                float* __restrict__ out, int N, int C, int pitch, float eps) {
    extern __shared__ __align__(16) float staged[];   // two rows
    __shared__ float warp_total[kWarps];
    __shared__ Moments warp_moments[kWarps];
    __shared__ Moments row_moments;
    const int lane = threadIdx.x & 31, wid = threadIdx.x >> 5;

    stage_row<V>(staged, x + (size_t)blockIdx.x * C, C);
    close_group();
    int buf = 0;
    for (int row = blockIdx.x; row < N; row += gridDim.x) {
        Moments mine = {0.0f, 0.0f, 0.0f};
        const int ahead = row + gridDim.x;
        if (ahead < N) stage_row<V>(staged + (buf ^ 1) * pitch, x + (size_t)ahead * C, C);
        close_group();   // also an empty one, so that always all but the newest are waited for
        asm volatile("cp.async.wait_group 1;" ::: "memory");
        __syncthreads();
        const float* cur = staged + buf * pitch;

        // The pivot is the mean as far as one sum in single precision knows it.
        float total = 0.0f;
        for (int c = threadIdx.x; c < C; c += NUM_THREADS) total += cur[c];
        total = add_lanes(total);
        if (lane == 0) warp_total[wid] = total;
        __syncthreads();
        const float pivot = add_lanes(lane < kWarps ? warp_total[lane] : 0.0f) / C;

        for (int c = threadIdx.x; c < C; c += NUM_THREADS) mine.push(cur[c] - pivot);
        const Moments of_warp = merge_lanes(mine);
        if (lane == 0) warp_moments[wid] = of_warp;
        __syncthreads();
        if (wid == 0) {
            Moments m = {0.0f, 0.0f, 0.0f};
            if (lane < kWarps) m = warp_moments[lane];
            m = merge_lanes(m);
            if (lane == 0) row_moments = m;
        }
        __syncthreads();
        const float rest = row_moments.mean;
        const float rstd = rsqrtf(row_moments.m2 / C + eps);

        float* dst = out + (size_t)row * C;
        for (int c = threadIdx.x * V; c < C; c += NUM_THREADS * V) {
            const vec_t<V> w = *reinterpret_cast<const vec_t<V>*>(weight + c);
            const vec_t<V> b = *reinterpret_cast<const vec_t<V>*>(bias + c);
            vec_t<V> y = *reinterpret_cast<const vec_t<V>*>(cur + c);
#pragma unroll
            for (int i = 0; i < V; ++i) y.v[i] = fmaf((y.v[i] - pivot - rest) * rstd, w.v[i], b.v[i]);
            *reinterpret_cast<vec_t<V>*>(dst + c) = y;
        }
        __syncthreads();   // the row has been read before the one after next takes its place
        buf ^= 1;
    }
}
