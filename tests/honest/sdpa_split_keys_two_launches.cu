/* evoengine
name: sdpa_split_keys_two_launches
precision: fp16
summary: keys split among blocks, WMMA with the sums in shared memory; partial outputs, maxima and totals go to scratch and are merged
tunables:
  MOST_SPLITS: [4, 2, 8]
let:
  TILES: ceil_div(S, 64)
  SPLITS: max(1, min(MOST_SPLITS, TILES))
  SPAN: 64 * ceil_div(TILES, SPLITS)
  SHARED: 4*64*68 + 2*64*72 + 2*3*64*(D + 8) + 4*64*(D + 4)
require:
  - SHARED <= MAX_SHARED_BYTES
scratch:
  partial: {dtype: float32, shape: [SPLITS, "B * H * S", D]}
  statistics: {dtype: float32, shape: [SPLITS, "B * H * S", 2]}
launches:
  - kernel: partial_attention<D, causal>
    grid: [TILES, "B * H", SPLITS]
    block: [128]
    shared: SHARED
    args: [q, k, v, partial, statistics, S, SPAN, scale]
  - kernel: merge
    grid: ["B * H * S"]
    block: [D]
    args: [partial, statistics, out, SPLITS]
*/
#include <cuda_fp16.h>
#include <mma.h>

using namespace nvcuda;

template <int D>
__device__ void load_tile(__half* tile, const __half* head, int first, int S) {
    for (int i = threadIdx.x; i < 64 * D / 8; i += 128) {
        const int r = i / (D / 8), c = i % (D / 8) * 8;
        *reinterpret_cast<uint4*>(tile + r * (D + 8) + c) =
            first + r < S ? *reinterpret_cast<const uint4*>(head + size_t(first + r) * D + c) : make_uint4(0, 0, 0, 0);
    }
}

template <int D, bool CAUSAL>
__global__ void __launch_bounds__(128, 2)
partial_attention(const __half* __restrict__ q, const __half* __restrict__ k, const __half* __restrict__ v, float* __restrict__ partial,
                  float* __restrict__ statistics, int S, int span, float scale) {
    extern __shared__ __align__(128) unsigned char shared[];
    constexpr int P = D + 8, PO = D + 4;
    float* scores = reinterpret_cast<float*>(shared);                   // [64][68]
    float* sums = scores + 64 * 68;                                     // [64][D + 4]
    __half* weights = reinterpret_cast<__half*>(sums + 64 * PO);        // [64][72]
    __half* tq = weights + 64 * 72;
    __half* tk = tq + 64 * P;
    __half* tv = tk + 64 * P;
    const int warp = threadIdx.x / 32, row0 = blockIdx.x * 64, my_row = threadIdx.x / 2, side = threadIdx.x % 2;
    const size_t head = size_t(blockIdx.y) * S * D;
    load_tile<D>(tq, q + head, row0, S);
    for (int i = threadIdx.x; i < 64 * PO; i += 128) sums[i] = 0.0f;
    float top = -INFINITY, total = 0.0f;   // of row my_row, the same in both of its threads

    const int begin = blockIdx.z * span, end = min(CAUSAL ? min(S, row0 + 64) : S, begin + span);
    for (int j0 = begin; j0 < end; j0 += 64) {
        __syncthreads();
        load_tile<D>(tk, k + head, j0, S);
        load_tile<D>(tv, v + head, j0, S);
        __syncthreads();
#pragma unroll
        for (int n = 0; n < 4; ++n) {
            wmma::fragment<wmma::accumulator, 16, 16, 16, float> c;
            wmma::fill_fragment(c, 0.0f);
#pragma unroll
            for (int d = 0; d < D; d += 16) {
                wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> x;
                wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::col_major> y;
                wmma::load_matrix_sync(x, tq + warp * 16 * P + d, P);
                wmma::load_matrix_sync(y, tk + n * 16 * P + d, P);
                wmma::mma_sync(c, x, y, c);
            }
            wmma::store_matrix_sync(scores + warp * 16 * 68 + n * 16, c, 68, wmma::mem_row_major);
        }
        __syncwarp();   // a warp's 16 rows are its own from here on
        float* line = scores + my_row * 68;
        float next = top;
        for (int c = side; c < 64; c += 2) {
            const int j = j0 + c;
            const float s = j < end && (!CAUSAL || j <= row0 + my_row) ? line[c] * scale : -INFINITY;
            line[c] = s;
            next = fmaxf(next, s);
        }
        next = fmaxf(next, __shfl_xor_sync(~0u, next, 1));
        const float base = next == -INFINITY ? 0.0f : next, keep = __expf(top - base);
        float added = 0.0f;
        for (int c = side; c < 64; c += 2) {
            const float p = __expf(line[c] - base);
            weights[my_row * 72 + c] = __float2half(p);
            added += p;
        }
        added += __shfl_xor_sync(~0u, added, 1);
        total = total * keep + added;
        top = next;
        for (int d = side; d < D; d += 2) sums[my_row * PO + d] *= keep;
        __syncwarp();
#pragma unroll
        for (int n = 0; n < D / 16; ++n) {
            float* at = sums + warp * 16 * PO + n * 16;
            wmma::fragment<wmma::accumulator, 16, 16, 16, float> c;
            wmma::load_matrix_sync(c, at, PO, wmma::mem_row_major);
#pragma unroll
            for (int j = 0; j < 64; j += 16) {
                wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> x;
                wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::row_major> y;
                wmma::load_matrix_sync(x, weights + warp * 16 * 72 + j, 72);
                wmma::load_matrix_sync(y, tv + j * P + n * 16, P);
                wmma::mma_sync(c, x, y, c);
            }
            wmma::store_matrix_sync(at, c, PO, wmma::mem_row_major);
        }
    }
    __syncthreads();
    const size_t rows = size_t(gridDim.y) * S, first = blockIdx.z * rows + size_t(blockIdx.y) * S + row0;
    for (int i = threadIdx.x; i < 64 * D; i += 128)
        if (row0 + i / D < S) partial[first * D + i] = sums[i / D * PO + i % D];
    if (side == 0 && row0 + my_row < S) reinterpret_cast<float2*>(statistics)[first + my_row] = make_float2(top, total);
}

// One block a query, one thread an element. A split without keys has the maximum -inf and counts for nothing.
__global__ void merge(const float* __restrict__ partial, const float* __restrict__ statistics, __half* __restrict__ out, int splits) {
    const size_t rows = gridDim.x, row = blockIdx.x;
    const float2* stat = reinterpret_cast<const float2*>(statistics);
    float top = -INFINITY, total = 0.0f, sum = 0.0f;
    for (int s = 0; s < splits; ++s) top = fmaxf(top, stat[s * rows + row].x);
    for (int s = 0; s < splits; ++s) {
        const float factor = __expf(stat[s * rows + row].x - top);
        total += factor * stat[s * rows + row].y;
        sum += factor * partial[(s * rows + row) * blockDim.x + threadIdx.x];
    }
    out[row * blockDim.x + threadIdx.x] = __float2half(sum / total);
}
