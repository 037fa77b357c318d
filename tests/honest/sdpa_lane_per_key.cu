/* evoengine
name: sdpa_lane_per_key
precision: fp16
summary: persistent blocks draw query tiles from an atomic queue, longest first; each lane scores a key of its own, weights go round by shuffle
tunables:
  WARPS: [4, 8]
  ROWS: [4, 2]              # queries of a warp
  BLOCKS_PER_SM: [4, 2]
let:
  TILES: ceil_div(S, WARPS * ROWS)
  ITEMS: TILES * B * H
launches:
  - kernel: attention<D, causal>
    grid: ["min(ITEMS, SM_COUNT * BLOCKS_PER_SM)"]
    block: ["32 * WARPS"]
    args: [q, k, v, out, S, TILES, ITEMS, scale]
*/
#include <cuda_fp16.h>

__device__ unsigned int queue_head = 0u;
static __device__ unsigned int retired = 0u;

template <int D> struct Tiles {
    __half2 keys[32][D / 2 + 1];      // one more: lanes read down a column of rows
    __half2 values[32][D / 2];
    float2 queries[WARPS * ROWS][D / 2];
};

template <int D, bool CAUSAL>
__device__ void attend(Tiles<D>& t, const __half2* __restrict__ q, const __half2* __restrict__ k, const __half2* __restrict__ v,
                       __half2* __restrict__ out, int first, int S, float scale) {
    constexpr int P = D / 2;
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, row0 = first + warp * ROWS;
    for (int i = threadIdx.x; i < WARPS * ROWS * P; i += 32 * WARPS) {
        const float2 x = first + i / P < S ? __half22float2(q[size_t(first) * P + i]) : make_float2(0.0f, 0.0f);
        t.queries[i / P][i % P] = make_float2(x.x * scale, x.y * scale);
    }
    float top[ROWS], total[ROWS];
    float2 acc[ROWS][P / 32];
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
        top[r] = -INFINITY, total[r] = 0.0f;
#pragma unroll
        for (int e = 0; e < P / 32; ++e) acc[r][e] = make_float2(0.0f, 0.0f);
    }
    const int end = CAUSAL ? min(S, first + WARPS * ROWS) : S;
    for (int j0 = 0; j0 < end; j0 += 32) {
        __syncthreads();
        for (int i = threadIdx.x; i < 32 * P; i += 32 * WARPS) {
            const bool inside = j0 + i / P < S;
            t.keys[i / P][i % P] = inside ? k[size_t(j0) * P + i] : __half2half2(__half(0.0f));
            t.values[i / P][i % P] = inside ? v[size_t(j0) * P + i] : __half2half2(__half(0.0f));
        }
        __syncthreads();
        float s[ROWS] = {};
        for (int d = 0; d < P; ++d) {
            const float2 x = __half22float2(t.keys[lane][d]);
#pragma unroll
            for (int r = 0; r < ROWS; ++r) s[r] += x.x * t.queries[warp * ROWS + r][d].x + x.y * t.queries[warp * ROWS + r][d].y;
        }
#pragma unroll
        for (int r = 0; r < ROWS; ++r) {
            if (j0 + lane >= S || (CAUSAL && j0 + lane > row0 + r)) s[r] = -INFINITY;
            float next = fmaxf(top[r], s[r]);
#pragma unroll
            for (int o = 16; o; o /= 2) next = fmaxf(next, __shfl_xor_sync(~0u, next, o));
            const float base = next == -INFINITY ? 0.0f : next;
            const float keep = __expf(top[r] - base);
            s[r] = __expf(s[r] - base);   // from here on a weight
            total[r] = total[r] * keep + s[r];
            top[r] = next;
#pragma unroll
            for (int e = 0; e < P / 32; ++e) acc[r][e].x *= keep, acc[r][e].y *= keep;
        }
        for (int j = 0; j < 32; ++j)
#pragma unroll
            for (int r = 0; r < ROWS; ++r) {
                const float p = __shfl_sync(~0u, s[r], j);
#pragma unroll
                for (int e = 0; e < P / 32; ++e) {
                    const float2 x = __half22float2(t.values[j][e * 32 + lane]);
                    acc[r][e].x += p * x.x, acc[r][e].y += p * x.y;
                }
            }
    }
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
#pragma unroll
        for (int o = 16; o; o /= 2) total[r] += __shfl_xor_sync(~0u, total[r], o);
        if (row0 + r < S)
#pragma unroll
            for (int e = 0; e < P / 32; ++e)
                out[size_t(row0 + r) * P + e * 32 + lane] = __floats2half2_rn(acc[r][e].x / total[r], acc[r][e].y / total[r]);
    }
}

template <int D, bool CAUSAL>
__global__ void __launch_bounds__(32 * WARPS)
attention(const __half* q, const __half* k, const __half* v, __half* out, int S, int tiles, int items, float scale) {
    __shared__ Tiles<D> shared;
    __shared__ unsigned item;
    while (true) {
        __syncthreads();
        if (threadIdx.x == 0) item = atomicAdd(&queue_head, 1u);
        __syncthreads();
        if (item >= items) break;
        const int heads = items / tiles, head = item % heads, tile = tiles - 1 - item / heads;
        const size_t at = size_t(head) * S * (D / 2);
        attend<D, CAUSAL>(shared, (const __half2*)q + at, (const __half2*)k + at, (const __half2*)v + at, (__half2*)out + at,
                          tile * WARPS * ROWS, S, scale);
    }
    if (threadIdx.x == 0) {
        __threadfence();
        if (atomicAdd(&retired, 1u) + 1u == gridDim.x) {
            atomicExch(&retired, 0u);
            atomicExch(&queue_head, 0u);
        }
    }
}
