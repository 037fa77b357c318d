/* evoengine
name: plumb_microtiles_simt
precision: fp16
summary: single-precision arithmetic on CUDA cores, 2x4 register tiles, each block walks over several query tiles, next keys wait in registers
tunables:
  RUN: [2, 1, 4]                     # query tiles of a block
let:
  TILES: ceil_div(S, 32)
  ITEMS: TILES * B * H
  FLOATS: 2 * 32 * (D + 4) + 32 * D + 32 * 33
require:
  - 4 * FLOATS <= MAX_SHARED_BYTES
launches:
  - kernel: "plumb<D>"
    grid: ["ceil_div(ITEMS, RUN)"]
    block: [128]
    shared: 4 * FLOATS
    args: [q, k, v, out, S, TILES, ITEMS, scale, causal]
*/
#include <cuda_fp16.h>

constexpr int kTile = 32;       // queries of an item, and keys of a step
constexpr int kThreads = 128;   // 16 x 8: thread (y, x) has queries y, y + 16 and keys x, x + 8, x + 16, x + 24

// Eight halves, as they travel.
struct alignas(16) Octet {
    __half2 h[4];

    __device__ void unpack(float* to, float factor) const {
        for (int i = 0; i < 4; ++i) {
            const float2 f = __half22float2(h[i]);
            to[2 * i] = f.x * factor;
            to[2 * i + 1] = f.y * factor;
        }
    }
};

// A tile of 32 rows on its way from global memory to shared memory, spread over the threads.
template <int D>
class TileInFlight {
    static constexpr int kPerRow = D / 8;
    static constexpr int kEach = kTile * kPerRow / kThreads;
    Octet held_[kEach];

  public:
    __device__ void fetch(const __half* matrix, int first, int rows) {
#pragma unroll
        for (int i = 0; i < kEach; ++i) {
            const int at = i * kThreads + threadIdx.x;
            const int r = first + at / kPerRow;
            held_[i] = r < rows ? *reinterpret_cast<const Octet*>(matrix + size_t(r) * D + at % kPerRow * 8) : Octet{};
        }
    }
    __device__ void put(float* to, int pitch, float factor = 1.0f) const {
#pragma unroll
        for (int i = 0; i < kEach; ++i) {
            const int at = i * kThreads + threadIdx.x;
            held_[i].unpack(to + at / kPerRow * pitch + at % kPerRow * 8, factor);
        }
    }
};

__device__ __forceinline__ float dot4(float4 a, float4 b, float c) {
    return fmaf(a.x, b.x, fmaf(a.y, b.y, fmaf(a.z, b.z, fmaf(a.w, b.w, c))));
}

__device__ __forceinline__ void axpy4(float4& y, float a, float4 x) {
    y.x = fmaf(a, x.x, y.x), y.y = fmaf(a, x.y, y.y), y.z = fmaf(a, x.z, y.z), y.w = fmaf(a, x.w, y.w);
}

// Over the eight threads that have the same two queries; they are neighbours in a warp.
template <typename Op>
__device__ __forceinline__ float across_row(float value, Op op) {
    for (int step = 4; step > 0; step >>= 1) value = op(value, __shfl_xor_sync(0xffffffffu, value, step));
    return value;
}

template <int D>
__global__ void __launch_bounds__(kThreads)
plumb(const __half* q, const __half* k, const __half* v, __half* out, int S, int tiles, int items, float scale,
      bool causal) {
    constexpr int kPitch = D + 4;
    extern __shared__ __align__(16) float pool[];
    float* queries = pool;                          // [32][D + 4]
    float* keys = queries + kTile * kPitch;         // [32][D + 4]
    float* values = keys + kTile * kPitch;          // [32][D]
    float* weights = values + kTile * D;            // [32][33], a row belongs to one warp

    const int x = threadIdx.x % 8, y = threadIdx.x / 8;
    const int heads = items / tiles;

    for (int run = 0; run < RUN; ++run) {
        const int item = blockIdx.x * RUN + run;
        if (item >= items) break;
        // under a causal mask late queries have the most work: they start first
        const int head = item % heads;
        const int first = (tiles - 1 - item / heads) * kTile;
        const size_t offset = size_t(head) * S * D;
        const int end = causal ? min(S, first + kTile) : S;

        TileInFlight<D> next_keys, next_values;
        next_keys.fetch(q + offset, first, S);
        __syncthreads();                            // the item before is finished
        next_keys.put(queries, kPitch, scale * 1.4426950408889634f);
        next_keys.fetch(k + offset, 0, S);
        next_values.fetch(v + offset, 0, S);

        float peak[2] = {-INFINITY, -INFINITY}, total[2] = {0.0f, 0.0f};
        float4 acc[2][D / 32] = {};

        for (int from = 0; from < end; from += kTile) {
            if (from > 0) __syncthreads();          // the step before is finished
            next_keys.put(keys, kPitch);
            next_values.put(values, D);
            __syncthreads();
            if (from + kTile < end) {
                next_keys.fetch(k + offset, from + kTile, S);
                next_values.fetch(v + offset, from + kTile, S);
            }

            float hit[2][4] = {};
            for (int d = 0; d < D; d += 4) {
                float4 a[2], b[4];
                for (int r = 0; r < 2; ++r) a[r] = *reinterpret_cast<const float4*>(queries + (y + 16 * r) * kPitch + d);
                for (int c = 0; c < 4; ++c) b[c] = *reinterpret_cast<const float4*>(keys + (x + 8 * c) * kPitch + d);
                for (int r = 0; r < 2; ++r)
                    for (int c = 0; c < 4; ++c) hit[r][c] = dot4(a[r], b[c], hit[r][c]);
            }

            for (int r = 0; r < 2; ++r) {
                float best = peak[r];
                for (int c = 0; c < 4; ++c) {
                    const int key = from + x + 8 * c;
                    const bool hidden = key >= S || (causal && key > first + y + 16 * r);
                    hit[r][c] = hidden ? -INFINITY : hit[r][c];
                    best = fmaxf(best, hit[r][c]);
                }
                best = across_row(best, [](float a, float b) { return fmaxf(a, b); });
                float sum = 0.0f;
                for (int c = 0; c < 4; ++c) {
                    const float weight = exp2f(hit[r][c] - best);
                    sum += weight;
                    weights[(y + 16 * r) * (kTile + 1) + x + 8 * c] = weight;
                }
                sum = across_row(sum, [](float a, float b) { return a + b; });
                const float fade = exp2f(peak[r] - best);   // 0 in the first step: key 0 is always visible
                total[r] = total[r] * fade + sum;
                peak[r] = best;
                for (int j = 0; j < D / 32; ++j) {
                    acc[r][j].x *= fade, acc[r][j].y *= fade;
                    acc[r][j].z *= fade, acc[r][j].w *= fade;
                }
            }
            __syncwarp();                           // rows of weights stay within a warp

            for (int key = 0; key < kTile; ++key) {
                const float upper = weights[y * (kTile + 1) + key];
                const float lower = weights[(y + 16) * (kTile + 1) + key];
                for (int j = 0; j < D / 32; ++j) {
                    const float4 value = *reinterpret_cast<const float4*>(values + key * D + j * 32 + x * 4);
                    axpy4(acc[0][j], upper, value);
                    axpy4(acc[1][j], lower, value);
                }
            }
        }

        for (int r = 0; r < 2; ++r) {
            const int row = first + y + 16 * r;
            if (row >= S) continue;
            const float inverse = 1.0f / total[r];
            for (int j = 0; j < D / 32; ++j) {
                const float4 a = acc[r][j];
                __half2* to = reinterpret_cast<__half2*>(out + offset + size_t(row) * D + j * 32 + x * 4);
                to[0] = __floats2half2_rn(a.x * inverse, a.y * inverse);
                to[1] = __floats2half2_rn(a.z * inverse, a.w * inverse);
            }
        }
    }
}
