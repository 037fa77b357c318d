/* evoengine
name: sdpa_l4_weights_in_registers
precision: fp16
summary: mma.sync with the weights passed from one product to the next in registers; K and V double buffered through the pipeline API
tunables:
  WARPS: [4, 2]
  KEYS: [32, 64, 16]
let:
  ROWS: 16 * WARPS
  TILE: 2 * KEYS * (D + 8)
require:
  - 4 * TILE <= min(MAX_SHARED_BYTES, 101376)
launches:
  - kernel: attention<D, causal>
    grid: ["ceil_div(S, ROWS)", "B * H"]
    block: ["32 * WARPS"]
    shared: 4 * TILE
    args: [q, k, v, out, S, "scale * 1.4426950408889634"]
*/
#include <cuda_fp16.h>
#include <cuda_pipeline.h>

struct Accumulator { float x[4]; };

__device__ __forceinline__ void multiply_add(Accumulator& c, const unsigned (&a)[4], unsigned b0, unsigned b1) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(c.x[0]), "+f"(c.x[1]), "+f"(c.x[2]), "+f"(c.x[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
__device__ __forceinline__ unsigned word(const __half* p) { return *reinterpret_cast<const unsigned*>(p); }
__device__ __forceinline__ unsigned word(float low, float high) {
    const __half2 h = __floats2half2_rn(low, high);
    return *reinterpret_cast<const unsigned*>(&h);
}

template <int D> __device__ __forceinline__ void start_copy(__half* to, const __half* head, int first, int S) {
    for (int i = threadIdx.x; i < KEYS * D / 8; i += 32 * WARPS) {
        const int r = i / (D / 8), c = i % (D / 8) * 8, beyond = first + r < S ? 0 : 16;
        __pipeline_memcpy_async(to + r * (D + 8) + c, head + (beyond ? 0 : size_t(first + r) * D + c), 16, beyond);   // zeros beyond S
    }
}

template <int D, bool CAUSAL>
__global__ void __launch_bounds__(32 * WARPS, 2)
attention(const __half* __restrict__ q, const __half* __restrict__ k, const __half* __restrict__ v, __half* __restrict__ out, int S, float to_log2) {
    extern __shared__ __align__(16) __half ring[];
    constexpr int P = D + 8, TILE = KEYS * P;
    const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4, row0 = (blockIdx.x * WARPS + threadIdx.x / 32) * 16;
    const size_t head = size_t(blockIdx.y) * S * D;
    unsigned fq[D / 16][4];
#pragma unroll
    for (int d = 0; d < D / 16; ++d)
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const int row = row0 + g + i % 2 * 8;
            fq[d][i] = row < S ? word(q + head + size_t(row) * D + d * 16 + i / 2 * 8 + t * 2) : 0u;
        }
    Accumulator o[D / 8] = {};
    float top[2] = {-INFINITY, -INFINITY}, total[2] = {0.0f, 0.0f};
    const int end = CAUSAL ? min(S, int(blockIdx.x + 1) * WARPS * 16) : S, steps = (end + KEYS - 1) / KEYS;

    start_copy<D>(ring, k + head, 0, S);
    start_copy<D>(ring + TILE, v + head, 0, S);
    __pipeline_commit();
    for (int step = 0; step < steps; ++step) {
        if (step + 1 < steps) {
            __half* next = ring + (step + 1) % 2 * 2 * TILE;
            start_copy<D>(next, k + head, (step + 1) * KEYS, S);
            start_copy<D>(next + TILE, v + head, (step + 1) * KEYS, S);
        }
        __pipeline_commit();
        __pipeline_wait_prior(1);
        __syncthreads();
        const __half* tk = ring + step % 2 * 2 * TILE;
        const __half* tv = tk + TILE;
        Accumulator s[KEYS / 8] = {};
#pragma unroll
        for (int n = 0; n < KEYS / 8; ++n)
#pragma unroll
            for (int d = 0; d < D / 16; ++d) {
                const __half* at = tk + (n * 8 + g) * P + d * 16 + t * 2;
                multiply_add(s[n], fq[d], word(at), word(at + 8));
            }
        float keep[2];
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            float next = top[h];
#pragma unroll
            for (int n = 0; n < KEYS / 8; ++n)
#pragma unroll
                for (int e = 0; e < 2; ++e) {
                    const int key = step * KEYS + n * 8 + t * 2 + e;
                    float& x = s[n].x[2 * h + e];
                    x = key < S && (!CAUSAL || key <= row0 + g + 8 * h) ? x * to_log2 : -INFINITY;
                    next = fmaxf(next, x);
                }
            next = fmaxf(next, __shfl_xor_sync(0xffffffffu, next, 1));
            next = fmaxf(next, __shfl_xor_sync(0xffffffffu, next, 2));
            const float base = next == -INFINITY ? 0.0f : next;
            keep[h] = exp2f(top[h] - base);
            top[h] = next;
            total[h] *= keep[h];
#pragma unroll
            for (int n = 0; n < KEYS / 8; ++n)
#pragma unroll
                for (int e = 0; e < 2; ++e) total[h] += s[n].x[2 * h + e] = exp2f(s[n].x[2 * h + e] - base);
        }
#pragma unroll
        for (int n = 0; n < D / 8; ++n) o[n].x[0] *= keep[0], o[n].x[1] *= keep[0], o[n].x[2] *= keep[1], o[n].x[3] *= keep[1];
#pragma unroll
        for (int j = 0; j < KEYS / 16; ++j) {
            const unsigned p[4] = {word(s[2 * j].x[0], s[2 * j].x[1]), word(s[2 * j].x[2], s[2 * j].x[3]),
                                   word(s[2 * j + 1].x[0], s[2 * j + 1].x[1]), word(s[2 * j + 1].x[2], s[2 * j + 1].x[3])};
#pragma unroll
            for (int n = 0; n < D / 8; ++n) {
                const unsigned at = __cvta_generic_to_shared(tv + (j * 16 + lane % 16) * P + n * 8);
                unsigned b0, b1;
                asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];" : "=r"(b0), "=r"(b1) : "r"(at) : "memory");
                multiply_add(o[n], p, b0, b1);
            }
        }
        __syncthreads();   // the tile is free for the copy after the next one
    }
#pragma unroll
    for (int h = 0; h < 2; ++h) {
        total[h] += __shfl_xor_sync(0xffffffffu, total[h], 1);
        total[h] += __shfl_xor_sync(0xffffffffu, total[h], 2);
        const int row = row0 + g + 8 * h;
        if (row < S)
#pragma unroll
            for (int n = 0; n < D / 8; ++n)
                *reinterpret_cast<__half2*>(out + head + size_t(row) * D + n * 8 + t * 2) =
                    __floats2half2_rn(o[n].x[2 * h] / total[h], o[n].x[2 * h + 1] / total[h]);
    }
}
