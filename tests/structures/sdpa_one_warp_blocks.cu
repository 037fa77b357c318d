/* evoengine
name: sdpa_one_warp_blocks
precision: fp16
summary: blocks of one warp and 16 queries, WMMA through shared memory, no barrier of a block
tunables:
  KEYS: [32, 16, 64]
let:
  SHARED: 2*16*D + 2*KEYS*D + 4*16*KEYS + 2*16*KEYS + 4*16*D
require:
  - SHARED <= MAX_SHARED_BYTES
launches:
  - kernel: sdpa<D, causal>
    grid: ["ceil_div(S, 16)", "B*H"]
    block: [32]
    shared: SHARED
    args: [q, k, v, out, S, scale]
*/
#include <cuda_fp16.h>
#include <mma.h>
using namespace nvcuda::wmma;

// Copies `count` rows of D halves to shared memory, from row `first` of S; rows from S on are zeros.
template <int D> __device__ __forceinline__ void copy_rows(half* to, const half* from, int first, int count, int S, int lane) {
    for (int i = lane; i < count * D / 8; i += 32) {
        const int row = i / (D / 8), at = i % (D / 8);
        uint4 words = make_uint4(0, 0, 0, 0);
        if (first + row < S) words = reinterpret_cast<const uint4*>(from + (long long)(first + row) * D)[at];
        reinterpret_cast<uint4*>(to)[i] = words;
    }
}

template <int D, bool CAUSAL>
__global__ void __launch_bounds__(32)
sdpa(const half* __restrict__ q, const half* __restrict__ k, const half* __restrict__ v, half* __restrict__ out, int S, float scale) {
    extern __shared__ __align__(128) unsigned char shared[];
    half* queries = reinterpret_cast<half*>(shared);            // [16][D]
    half* tile = queries + 16 * D;                              // [KEYS][D], first K, then V
    float* scores = reinterpret_cast<float*>(tile + KEYS * D);  // [16][KEYS]
    half* weights = reinterpret_cast<half*>(scores + 16 * KEYS);
    float* sums = reinterpret_cast<float*>(weights + 16 * KEYS);  // [16][D]
    const int lane = threadIdx.x, row = lane / 2, side = lane % 2, first_query = blockIdx.x * 16;
    const long long head = (long long)blockIdx.y * S * D;
    copy_rows<D>(queries, q + head, first_query, 16, S, lane);
    for (int i = lane; i < 16 * D; i += 32) sums[i] = 0.0f;
    float most = -INFINITY, whole = 0.0f;
    const int end = CAUSAL ? min(S, first_query + 16) : S;
    for (int first = 0; first < end; first += KEYS) {
        __syncwarp();
        copy_rows<D>(tile, k + head, first, KEYS, S, lane);
        __syncwarp();
#pragma unroll
        for (int n = 0; n < KEYS / 16; ++n) {
            fragment<accumulator, 16, 16, 16, float> c;
            fill_fragment(c, 0.0f);
#pragma unroll
            for (int d = 0; d < D; d += 16) {
                fragment<matrix_a, 16, 16, 16, half, row_major> a;
                fragment<matrix_b, 16, 16, 16, half, col_major> b;
                load_matrix_sync(a, queries + d, D);
                load_matrix_sync(b, tile + n * 16 * D + d, D);
                mma_sync(c, a, b, c);
            }
            store_matrix_sync(scores + n * 16, c, KEYS, mem_row_major);
        }
        __syncwarp();
        copy_rows<D>(tile, v + head, first, KEYS, S, lane);
        // two lanes a row, every other key each
        const int seen = min(KEYS, (CAUSAL ? min(S, first_query + row + 1) : S) - first);
        float top = most;
        for (int key = side; key < seen; key += 2) top = fmaxf(top, scores[row * KEYS + key] * scale);
        top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, 1));
        const float shrink = most == -INFINITY ? 0.0f : __expf(most - top);
        float part = 0.0f;
        for (int key = side; key < KEYS; key += 2) {
            const float weight = key < seen ? __expf(scores[row * KEYS + key] * scale - top) : 0.0f;
            weights[row * KEYS + key] = __float2half_rn(weight);
            part += weight;
        }
        whole = whole * shrink + part + __shfl_xor_sync(0xffffffffu, part, 1);
        most = top;
        for (int d = side; d < D; d += 2) sums[row * D + d] *= shrink;
        __syncwarp();
#pragma unroll
        for (int d = 0; d < D; d += 16) {
            fragment<accumulator, 16, 16, 16, float> c;
            load_matrix_sync(c, sums + d, D, mem_row_major);
#pragma unroll
            for (int n = 0; n < KEYS / 16; ++n) {
                fragment<matrix_a, 16, 16, 16, half, row_major> a;
                fragment<matrix_b, 16, 16, 16, half, row_major> b;
                load_matrix_sync(a, weights + n * 16, KEYS);
                load_matrix_sync(b, tile + n * 16 * D + d, D);
                mma_sync(c, a, b, c);
            }
            store_matrix_sync(sums + d, c, D, mem_row_major);
        }
    }
    __syncwarp();
    if (first_query + row < S)
        for (int d = side; d < D; d += 2)
            out[head + (long long)(first_query + row) * D + d] = __float2half_rn(sums[row * D + d] / whole);
}
