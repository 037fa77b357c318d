/* evoengine
name: pewter_chunks_reunited
precision: fp16
summary: no tensor cores; a lane has a key for the scores and columns for the output; chunks of keys reunited by a second launch
tunables:
  CHUNKS: [4, 2]
let:
  SPAN: ceil_div(S, CHUNKS)
scratch:
  sums: {dtype: float32, shape: [B, H, CHUNKS, S, D]}
  marks: {dtype: float32, shape: [B, H, CHUNKS, S, 2]}
launches:
  - kernel: "chunkAttention<D>"
    grid: ["ceil_div(S, 16)", CHUNKS, B * H]
    block: [128]
    args: [q, k, v, sums, marks, S, SPAN, scale, causal]
  - kernel: "reuniteChunks<D>"
    grid: ["ceil_div(B * H * S, 4)"]
    block: [128]
    args: [sums, marks, out, B * H * S, S]
*/
#include <cuda_fp16.h>

constexpr unsigned kAll = 0xffffffffu;
constexpr float kLog2e = 1.44269504088896f;

// The state of one query while it walks over keys: per lane a few pairs of columns.
template <int PAIRS>
struct Walker {
    float2 sum[PAIRS];
    float top;    // the largest score so far, in units of log2
    float mass;   // the sum of the weights so far

    __device__ void reset() {
        top = -INFINITY;
        mass = 0.0f;
#pragma unroll
        for (int p = 0; p < PAIRS; ++p) sum[p] = make_float2(0.0f, 0.0f);
    }
    __device__ void scaleBy(float f) {
        mass *= f;
#pragma unroll
        for (int p = 0; p < PAIRS; ++p) {
            sum[p].x *= f;
            sum[p].y *= f;
        }
    }
};

__device__ inline float warpMax(float x) {
#pragma unroll
    for (int step = 16; step >= 1; step /= 2) x = fmaxf(x, __shfl_xor_sync(kAll, x, step));
    return x;
}

__device__ inline float warpSum(float x) {
#pragma unroll
    for (int hop = 1; hop <= 16; hop *= 2) x += __shfl_xor_sync(kAll, x, hop);
    return x;
}

template <int D>
__global__ void __launch_bounds__(128)
chunkAttention(const half* q, const half* k, const half* v, float* sums, float* marks,
               int S, int span, float scale, bool causal) {
    constexpr int PAIRS = D / 64;       // pairs of columns that a lane accumulates
    constexpr int KEY_STRIDE = D / 2 + 1;  // in half2; odd, so that lanes hit different banks
    __shared__ half2 keys[32 * KEY_STRIDE];
    __shared__ half2 values[32 * (D / 2)];
    __shared__ float2 queries[16][D / 2];

    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    const int q0 = blockIdx.x * 16, chunk = blockIdx.y;
    const size_t head = size_t(blockIdx.z) * S * D;
    const half2* k2 = reinterpret_cast<const half2*>(k + head);
    const half2* v2 = reinterpret_cast<const half2*>(v + head);
    const half2* q2 = reinterpret_cast<const half2*>(q + head);

    // Queries enter with scale and log2(e) multiplied in, in single precision.
    for (int i = threadIdx.x; i < 16 * (D / 2); i += 128) {
        const int r = i / (D / 2), c = i % (D / 2);
        float2 x = make_float2(0.0f, 0.0f);
        if (q0 + r < S) x = __half22float2(q2[size_t(q0 + r) * (D / 2) + c]);
        queries[r][c] = make_float2(x.x * scale * kLog2e, x.y * scale * kLog2e);
    }

    Walker<PAIRS> walker[4];
#pragma unroll
    for (int r = 0; r < 4; ++r) walker[r].reset();

    const int first = chunk * span;
    int last = min(first + span, S);
    if (causal) last = min(last, q0 + 16);

    for (int k0 = first; k0 < last; k0 += 32) {
        __syncthreads();
        for (int i = threadIdx.x; i < 32 * (D / 2); i += 128) {
            const int r = i / (D / 2), c = i % (D / 2), key = min(k0 + r, S - 1);
            keys[r * KEY_STRIDE + c] = k2[size_t(key) * (D / 2) + c];
            values[r * (D / 2) + c] = v2[size_t(key) * (D / 2) + c];
        }
        __syncthreads();

        // Four queries at once, so that a key is read once for all of them.
        float score[4] = {0.0f, 0.0f, 0.0f, 0.0f};
        for (int c = 0; c < D / 2; ++c) {
            const float2 y = __half22float2(keys[lane * KEY_STRIDE + c]);
#pragma unroll
            for (int r = 0; r < 4; ++r) {
                const float2 x = queries[warp * 4 + r][c];
                score[r] = fmaf(x.x, y.x, fmaf(x.y, y.y, score[r]));
            }
        }

        const int key = k0 + lane;
        float weight[4];
#pragma unroll
        for (int r = 0; r < 4; ++r) {
            const int row = q0 + warp * 4 + r;
            const bool hidden = key >= last || (causal && key > row);
            if (hidden) score[r] = -INFINITY;
            const float top = fmaxf(walker[r].top, warpMax(score[r]));
            const float base = top == -INFINITY ? 0.0f : top;  // nothing seen yet
            walker[r].scaleBy(exp2f(walker[r].top - base));
            weight[r] = exp2f(score[r] - base);
            walker[r].mass += warpSum(weight[r]);
            walker[r].top = top;
        }

        for (int j = 0; j < 32; ++j) {
            float2 y[PAIRS];
#pragma unroll
            for (int p = 0; p < PAIRS; ++p) y[p] = __half22float2(values[j * (D / 2) + p * 32 + lane]);
#pragma unroll
            for (int r = 0; r < 4; ++r) {
                const float w = __shfl_sync(kAll, weight[r], j);
#pragma unroll
                for (int p = 0; p < PAIRS; ++p) {
                    walker[r].sum[p].x = fmaf(w, y[p].x, walker[r].sum[p].x);
                    walker[r].sum[p].y = fmaf(w, y[p].y, walker[r].sum[p].y);
                }
            }
        }
    }

    // An empty chunk leaves (-inf, 0) and zeros.
#pragma unroll
    for (int r = 0; r < 4; ++r) {
        const int row = q0 + warp * 4 + r;
        if (row >= S) continue;
        const size_t at = (size_t(blockIdx.z) * CHUNKS + chunk) * S + row;
#pragma unroll
        for (int p = 0; p < PAIRS; ++p)
            reinterpret_cast<float2*>(sums)[at * (D / 2) + p * 32 + lane] = walker[r].sum[p];
        if (lane == 0) {
            marks[at * 2] = walker[r].top;
            marks[at * 2 + 1] = walker[r].mass;
        }
    }
}

// A warp for each row of the output.
template <int D>
__global__ void reuniteChunks(const float* sums, const float* marks, half* out, int rows, int S) {
    const int lane = threadIdx.x & 31;
    const int index = blockIdx.x * 4 + (threadIdx.x >> 5);
    if (index >= rows) return;
    const int head = index / S, row = index % S;

    float top = -INFINITY;
    for (int c = 0; c < CHUNKS; ++c) top = fmaxf(top, marks[((size_t(head) * CHUNKS + c) * S + row) * 2]);

    float mass = 0.0f;
    float2 total[D / 64] = {};
    for (int c = 0; c < CHUNKS; ++c) {
        const size_t at = (size_t(head) * CHUNKS + c) * S + row;
        const float share = exp2f(marks[at * 2] - top);
        mass += share * marks[at * 2 + 1];
#pragma unroll
        for (int p = 0; p < D / 64; ++p) {
            const float2 part = reinterpret_cast<const float2*>(sums)[at * (D / 2) + p * 32 + lane];
            total[p].x += share * part.x;
            total[p].y += share * part.y;
        }
    }
    half2* to = reinterpret_cast<half2*>(out + size_t(index) * D);
#pragma unroll
    for (int p = 0; p < D / 64; ++p)
        to[p * 32 + lane] = __floats2half2_rn(total[p].x / mass, total[p].y / mass);
}
