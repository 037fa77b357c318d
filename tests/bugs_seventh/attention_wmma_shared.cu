/* evoengine
name: attention_wmma_shared
precision: fp16
summary: both products on WMMA; scores, weights and the results of 32 queries lie in shared memory, four threads keep a query's maximum and total
let:
  TILE: 2 * 32 * (D + 8)
launches:
  - kernel: attention<D, causal>
    grid: ["ceil_div(S, 32)", "B * H"]
    block: [128]
    shared: 3 * TILE + 4 * 32 * (D + 4) + 4 * 32 * 36 + 2 * 32 * 40
    args: [q, k, v, out, S, scale]
*/
#include <cuda_fp16.h>
#include <mma.h>

using namespace nvcuda;

constexpr int ROWS = 32, KEYS = 32, THREADS = 128, SCORE_PITCH = 36, WEIGHT_PITCH = 40;

using LeftTile = wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major>;
using KeyTile = wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::col_major>;
using ValueTile = wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::row_major>;
using Sums = wmma::fragment<wmma::accumulator, 16, 16, 16, float>;

// rows [first, first + 32) of a head, zeros from row S on
template <int D> __device__ __forceinline__ void load_rows(half* tile, const half* head, int first, int S) {
    for (int i = threadIdx.x; i < 32 * D / 8; i += THREADS) {
        const int r = i / (D / 8), c = i % (D / 8) * 8;
        uint4 piece = make_uint4(0, 0, 0, 0);
        if (first + r < S) piece = *reinterpret_cast<const uint4*>(head + size_t(first + r) * D + c);
        *reinterpret_cast<uint4*>(tile + r * (D + 8) + c) = piece;
    }
}

template <int D, bool CAUSAL>
__global__ void __launch_bounds__(THREADS)
attention(const half* __restrict__ q, const half* __restrict__ k, const half* __restrict__ v, half* __restrict__ out, int S,
          float scale) {
    constexpr int PITCH = D + 8, SUM_PITCH = D + 4;
    extern __shared__ __align__(128) unsigned char memory[];
    half* queries = reinterpret_cast<half*>(memory);
    half* keys = queries + ROWS * PITCH;
    half* values = keys + KEYS * PITCH;
    float* sums = reinterpret_cast<float*>(values + KEYS * PITCH);
    float* scores = sums + ROWS * SUM_PITCH;
    half* weights = reinterpret_cast<half*>(scores + ROWS * SCORE_PITCH);

    const int warp = threadIdx.x / 32, upper = warp / 2 * 16, side = warp % 2;
    const int own = threadIdx.x / 4, part = threadIdx.x % 4;
    const int first = blockIdx.x * ROWS;
    const size_t head = size_t(blockIdx.y) * S * D;
    load_rows<D>(queries, q + head, first, S);
    for (int i = threadIdx.x; i < ROWS * SUM_PITCH; i += THREADS) sums[i] = 0.0f;

    float top = -1e30f, total = 0.0f;
    const int end = CAUSAL ? min(S, first + ROWS) : S;
    for (int start = 0; start < end; start += KEYS) {
        __syncthreads();
        load_rows<D>(keys, k + head, start, S);
        load_rows<D>(values, v + head, start, S);
        __syncthreads();

        Sums score;
        wmma::fill_fragment(score, 0.0f);
        for (int d = 0; d < D; d += 16) {
            LeftTile x;
            KeyTile y;
            wmma::load_matrix_sync(x, queries + upper * PITCH + d, PITCH);
            wmma::load_matrix_sync(y, keys + side * 16 * PITCH + d, PITCH);
            wmma::mma_sync(score, x, y, score);
        }
        wmma::store_matrix_sync(scores + upper * SCORE_PITCH + side * 16, score, SCORE_PITCH, wmma::mem_row_major);
        __syncthreads();

        // softmax: four threads of a query have 8 keys each
        float own_score[KEYS / 4], high = top;
        for (int j = 0; j < KEYS / 4; ++j) {
            const int key = start + part * 8 + j;
            const bool seen = key < S && (!CAUSAL || key <= first + own);
            own_score[j] = seen ? scores[own * SCORE_PITCH + part * 8 + j] * scale : -1e30f;
            high = fmaxf(high, own_score[j]);
        }
        high = fmaxf(high, __shfl_xor_sync(~0u, high, 1));
        high = fmaxf(high, __shfl_xor_sync(~0u, high, 2));
        const float shrink = __expf(top - high);
        float added = 0.0f;
        for (int j = 0; j < KEYS / 4; ++j) {
            const float weight = __expf(own_score[j] - high);
            weights[own * WEIGHT_PITCH + part * 8 + j] = __float2half(weight);
            added += weight;
        }
        added += __shfl_xor_sync(~0u, added, 1);
        added += __shfl_xor_sync(~0u, added, 2);
        total = total * shrink + added;
        top = high;
        for (int c = part; c < D; c += 4) sums[own * SUM_PITCH + c] *= shrink;
        __syncthreads();

        for (int c = side * D / 2; c < (side + 1) * D / 2; c += 16) {
            Sums sum;
            wmma::load_matrix_sync(sum, sums + upper * SUM_PITCH + c, SUM_PITCH, wmma::mem_row_major);
            for (int j = 0; j < KEYS; j += 16) {
                LeftTile x;
                ValueTile y;
                wmma::load_matrix_sync(x, weights + upper * WEIGHT_PITCH + j, WEIGHT_PITCH);
                wmma::load_matrix_sync(y, values + j * PITCH + c, PITCH);
                wmma::mma_sync(sum, x, y, sum);
            }
            wmma::store_matrix_sync(sums + upper * SUM_PITCH + c, sum, SUM_PITCH, wmma::mem_row_major);
        }
    }
    __syncthreads();

    if (first + own < S)
        for (int c = part * 2; c < D; c += 8) {
            const float* from = sums + own * SUM_PITCH + c;
            *reinterpret_cast<half2*>(out + head + size_t(first + own) * D + c) =
                __floats2half2_rn(from[0] / total, from[1] / total);
        }
}
