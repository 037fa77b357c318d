/* evoengine
name: matmul_last_block_adds
precision: fp16
summary: tiles of 64 x 64 in registers of 4 x 4 a thread; three blocks share a tile's depth and leave parts behind, and the last to come adds them
let:
  V: 2 if K % 2 == 0 and N % 2 == 0 else 1
  TILES: ceil_div(N, 64) * ceil_div(M, 64)
scratch:
  parts: {dtype: float32, shape: [TILES, 3, 4096]}
  tickets: {dtype: int32, shape: [TILES], init: 0}
launches:
  - kernel: matmul_parts<V>
    grid: ["ceil_div(N, 64)", "ceil_div(M, 64)", 3]
    block: [256]
    args: [a, b, out, parts, tickets, M, N, K]
*/
#include <cuda_fp16.h>

constexpr int TILE = 64, SLICE = 16, SPLITS = 3, THREADS = 256, PITCH = TILE + 4;

template <int V>
__global__ void __launch_bounds__(THREADS)
matmul_parts(const half* __restrict__ a, const half* __restrict__ b, half* __restrict__ out, float* __restrict__ parts,
             int* __restrict__ tickets, int M, int N, int K) {
    __shared__ __align__(16) float left[2][SLICE][PITCH];    // depth by rows
    __shared__ __align__(16) float right[2][SLICE][PITCH];   // depth by columns
    __shared__ int ticket;
    const int first_row = blockIdx.y * TILE, first_column = blockIdx.x * TILE, split = blockIdx.z;
    const int tile = blockIdx.y * gridDim.x + blockIdx.x;
    const int depth = ((K + SPLITS - 1) / SPLITS + 1) & ~1;   // of a split, even for loads of two
    const int begin = min(K, split * depth), end = min(K, begin + depth);
    const int tx = threadIdx.x % 16, ty = threadIdx.x / 16;

    auto load = [&](int stage, int from) {
        for (int i = threadIdx.x * V; i < TILE * SLICE; i += THREADS * V) {
            const int r = i / SLICE, c = i % SLICE;
            const bool inside = first_row + r < M && from + c < end;
            for (int e = 0; e < V; ++e)
                left[stage][c + e][r] = inside ? __half2float(a[size_t(first_row + r) * K + from + c + e]) : 0.0f;
        }
        for (int i = threadIdx.x * V; i < SLICE * TILE; i += THREADS * V) {
            const int r = i / TILE, c = i % TILE;
            const bool inside = from + r < K && first_column + c < N;   // the zeros of `left` end the split
            for (int e = 0; e < V; ++e)
                right[stage][r][c + e] = inside ? __half2float(b[size_t(from + r) * N + first_column + c + e]) : 0.0f;
        }
    };

    float sum[4][4] = {};
    load(0, begin);
    for (int from = begin, stage = 0; from < end; from += SLICE, stage ^= 1) {
        __syncthreads();   // this slice is there, and the other stage is free
        if (from + SLICE < end) load(stage ^ 1, from + SLICE);
        for (int d = 0; d < SLICE; ++d) {
            const float4 x = *reinterpret_cast<const float4*>(&left[stage][d][ty * 4]);
            const float4 y = *reinterpret_cast<const float4*>(&right[stage][d][tx * 4]);
            const float xs[4] = {x.x, x.y, x.z, x.w}, ys[4] = {y.x, y.y, y.z, y.w};
            for (int i = 0; i < 4; ++i)
                for (int j = 0; j < 4; ++j) sum[i][j] = fmaf(xs[i], ys[j], sum[i][j]);
        }
    }

    float* own = parts + (size_t(tile) * SPLITS + split) * TILE * TILE;
    for (int i = 0; i < 4; ++i)
        *reinterpret_cast<float4*>(own + (ty * 4 + i) * TILE + tx * 4) = make_float4(sum[i][0], sum[i][1], sum[i][2], sum[i][3]);
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) ticket = atomicAdd(&tickets[tile], 1);
    __syncthreads();
    if (ticket != SPLITS - 1) return;

    __threadfence();
    const float* all = parts + size_t(tile) * SPLITS * TILE * TILE;
    for (int i = threadIdx.x; i < TILE * TILE; i += THREADS) {
        const int row = first_row + i / TILE, column = first_column + i % TILE;
        if (row >= M || column >= N) continue;
        float total = 0.0f;
        for (int s = 0; s < SPLITS; ++s) total += __ldcg(all + s * TILE * TILE + i);
        out[size_t(row) * N + column] = __float2half(total);
    }
}
