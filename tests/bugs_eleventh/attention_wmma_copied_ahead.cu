/* evoengine
name: attention_wmma_copied_ahead
precision: fp16
summary: 32 queries a block on WMMA tiles, with the sums kept in shared memory; the next 32 keys and values are copied while these are used
let:
  PITCH: D + 8
  SHARED: 2*5*32*PITCH + 4*32*36 + 2*32*40 + 4*32*(D + 4) + 4*32
require:
  - SHARED <= MAX_SHARED_BYTES
launches:
  - kernel: attend<D, causal>
    grid: ["ceil_div(S, 32)", H, B]
    block: [128]
    shared: SHARED
    args: [q, k, v, out, H, S, scale]
*/
#include <cuda_fp16.h>
#include <mma.h>

using namespace nvcuda;

constexpr int ROWS = 32, KEYS = 32, SCORE_PITCH = KEYS + 4, WEIGHT_PITCH = KEYS + 8;

__device__ __forceinline__ void copy_16(half* to, const half* from, bool inside) {
    const unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(to));
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(address), "l"(from), "r"(inside ? 16 : 0) : "memory");
}
__device__ __forceinline__ void commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int PENDING> __device__ __forceinline__ void wait() {
    asm volatile("cp.async.wait_group %0;" ::"n"(PENDING) : "memory");
}

template <int D, bool CAUSAL>
__global__ void __launch_bounds__(128)
attend(const half* __restrict__ q, const half* __restrict__ k, const half* __restrict__ v, half* __restrict__ out,
       int H, int S, float scale) {
    constexpr int PITCH = D + 8, SUM_PITCH = D + 4;
    extern __shared__ __align__(128) unsigned char memory[];
    half* queries = reinterpret_cast<half*>(memory);                  // [ROWS][PITCH]
    half* keys = queries + ROWS * PITCH;                              // [2][KEYS][PITCH]
    half* values = keys + 2 * KEYS * PITCH;                           // [2][KEYS][PITCH]
    half* weights = values + 2 * KEYS * PITCH;                        // [ROWS][WEIGHT_PITCH]
    float* scores = reinterpret_cast<float*>(weights + ROWS * WEIGHT_PITCH);   // [ROWS][SCORE_PITCH]
    float* sums = scores + ROWS * SCORE_PITCH;                        // [ROWS][SUM_PITCH]
    float* totals = sums + ROWS * SUM_PITCH;                          // [ROWS]

    const size_t head = (size_t(blockIdx.z) * H + blockIdx.y) * S * D;
    const int first = blockIdx.x * ROWS, warp = threadIdx.x / 32;
    const int visible = CAUSAL ? min(S, first + ROWS) : S;
    const int steps = (visible + KEYS - 1) / KEYS;

    auto copy_rows = [&](half* to, const half* from, int begin) {
        for (int i = threadIdx.x; i < 32 * D / 8; i += 128) {
            const int r = i / (D / 8), c = i % (D / 8) * 8;
            const bool inside = begin + r < S;
            copy_16(to + r * PITCH + c, from + head + (inside ? size_t(begin + r) * D + c : 0), inside);
        }
    };
    copy_rows(queries, q, first);
    copy_rows(keys, k, 0);
    copy_rows(values, v, 0);
    commit();
    for (int i = threadIdx.x; i < ROWS * SUM_PITCH; i += 128) sums[i] = 0.0f;

    // four threads share a row of the scores; all of them know its maximum and its total
    const int row = threadIdx.x / 4, part = threadIdx.x % 4;
    const float factor = scale * 1.4426950408889634f;
    float peak = -INFINITY, total = 0.0f;

    for (int step = 0; step < steps; ++step) {
        const half* key_tile = keys + (step & 1) * KEYS * PITCH;
        const half* value_tile = values + (step & 1) * KEYS * PITCH;
        if (step + 1 < steps) {
            copy_rows(keys + (~step & 1) * KEYS * PITCH, k, (step + 1) * KEYS);
            copy_rows(values + (~step & 1) * KEYS * PITCH, v, (step + 1) * KEYS);
            commit();
            wait<1>();
        } else {
            wait<0>();
        }
        __syncthreads();   // this step's tiles have come from all threads

        {
            const int r = warp / 2 * 16, c = warp % 2 * 16;
            wmma::fragment<wmma::accumulator, 16, 16, 16, float> score;
            wmma::fill_fragment(score, 0.0f);
            for (int d = 0; d < D; d += 16) {
                wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> left;
                wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::col_major> right;
                wmma::load_matrix_sync(left, queries + r * PITCH + d, PITCH);
                wmma::load_matrix_sync(right, key_tile + c * PITCH + d, PITCH);
                wmma::mma_sync(score, left, right, score);
            }
            wmma::store_matrix_sync(scores + r * SCORE_PITCH + c, score, SCORE_PITCH, wmma::mem_row_major);
        }
        __syncthreads();   // scores are complete

        float score[8], highest = peak;
        for (int j = 0; j < 8; ++j) {
            const int key = step * KEYS + part * 8 + j;
            const bool hidden = key >= S || (CAUSAL && key > first + row);
            score[j] = hidden ? -INFINITY : scores[row * SCORE_PITCH + part * 8 + j] * factor;
            highest = fmaxf(highest, score[j]);
        }
        highest = fmaxf(highest, __shfl_xor_sync(0xffffffffu, highest, 1));
        highest = fmaxf(highest, __shfl_xor_sync(0xffffffffu, highest, 2));
        const float shrink = exp2f(peak - highest);
        float added = 0.0f;
        for (int j = 0; j < 8; ++j) {
            const float weight = exp2f(score[j] - highest);
            added += weight;
            weights[row * WEIGHT_PITCH + part * 8 + j] = __float2half(weight);
        }
        added += __shfl_xor_sync(0xffffffffu, added, 1);
        added += __shfl_xor_sync(0xffffffffu, added, 2);
        total = total * shrink + added;
        peak = highest;
        for (int c = part; c < D; c += 4) sums[row * SUM_PITCH + c] *= shrink;
        __syncthreads();   // weights are complete, sums are of the new maximum

        for (int tile = warp; tile < ROWS / 16 * (D / 16); tile += 4) {
            const int r = tile % 2 * 16, c = tile / 2 * 16;
            wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum;
            wmma::load_matrix_sync(sum, sums + r * SUM_PITCH + c, SUM_PITCH, wmma::mem_row_major);
            for (int d = 0; d < KEYS; d += 16) {
                wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> left;
                wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::row_major> right;
                wmma::load_matrix_sync(left, weights + r * WEIGHT_PITCH + d, WEIGHT_PITCH);
                wmma::load_matrix_sync(right, value_tile + d * PITCH + c, PITCH);
                wmma::mma_sync(sum, left, right, sum);
            }
            wmma::store_matrix_sync(sums + r * SUM_PITCH + c, sum, SUM_PITCH, wmma::mem_row_major);
        }
        __syncthreads();   // tiles, weights and sums may be replaced
    }

    if (part == 0) totals[row] = total;
    __syncthreads();
    for (int i = threadIdx.x; i < ROWS * D; i += 128) {
        const int r = i / D, c = i % D;
        if (first + r < S) out[head + size_t(first + r) * D + c] = __float2half(sums[r * SUM_PITCH + c] / totals[r]);
    }
}
