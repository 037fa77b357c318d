/* evoengine
name: attention_sums_in_shared
precision: fp16
summary: both products on WMMA, sixteen queries a warp; the sums of the output stay in shared memory and are rescaled there
tunables:
  WARPS: [4, 2]
let:
  ROWS: 16 * WARPS
  HALVES: (ROWS + 64) * (D + 8) + ROWS * 40
  FLOATS: ROWS * 36 + ROWS * (D + 4)
launches:
  - kernel: attention<D, causal>
    grid: ["ceil_div(S, ROWS)", "B * H"]
    block: ["32 * WARPS"]
    shared: 2 * HALVES + 4 * FLOATS
    args: [q, k, v, out, S, scale]
*/
#include <cuda_fp16.h>
#include <mma.h>

using namespace nvcuda;

constexpr int ROWS = 16 * WARPS, KEYS = 32;
constexpr int LS = KEYS + 4, LP = KEYS + 8;   // rows of scores and of weights

// Copies rows of a head; those behind its end become zeros.
template <int D>
__device__ __forceinline__ void load_rows(half* to, const half* head, int count, int first, int S) {
    for (int i = threadIdx.x; i < count * D / 8; i += 32 * WARPS) {
        const int r = i / (D / 8), c = i % (D / 8) * 8;
        uint4 piece = make_uint4(0, 0, 0, 0);
        if (first + r < S) piece = *reinterpret_cast<const uint4*>(head + size_t(first + r) * D + c);
        *reinterpret_cast<uint4*>(to + r * (D + 8) + c) = piece;
    }
}

template <int D, bool CAUSAL>
__global__ void __launch_bounds__(32 * WARPS)
attention(const half* __restrict__ q, const half* __restrict__ k, const half* __restrict__ v, half* __restrict__ out, int S, float scale) {
    constexpr int LD = D + 8, LO = D + 4;
    extern __shared__ __align__(128) unsigned char memory[];
    half* sq = reinterpret_cast<half*>(memory);
    half* sk = sq + ROWS * LD;
    half* sv = sk + KEYS * LD;
    half* sp = sv + KEYS * LD;
    float* ss = reinterpret_cast<float*>(sp + ROWS * LP);
    float* so = ss + ROWS * LS;

    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int first = blockIdx.x * ROWS;
    const size_t head = size_t(blockIdx.y) * S * D;
    const int row = warp * 16 + lane / 2, part = lane % 2 * 16;   // two lanes share a row, sixteen keys each

    load_rows<D>(sq, q + head, ROWS, first, S);
    for (int i = threadIdx.x; i < ROWS * LO; i += 32 * WARPS) so[i] = 0.0f;

    float top = -INFINITY, total = 0.0f;
    const int end = CAUSAL ? min(S, first + ROWS) : S;
    for (int begin = 0; begin < end; begin += KEYS) {
        __syncthreads();   // the tiles before have been read
        load_rows<D>(sk, k + head, KEYS, begin, S);
        load_rows<D>(sv, v + head, KEYS, begin, S);
        __syncthreads();   // these are complete

        for (int j = 0; j < KEYS; j += 16) {
            wmma::fragment<wmma::accumulator, 16, 16, 16, float> score;
            wmma::fill_fragment(score, 0.0f);
            for (int d = 0; d < D; d += 16) {
                wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> x;
                wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::col_major> y;
                wmma::load_matrix_sync(x, sq + warp * 16 * LD + d, LD);
                wmma::load_matrix_sync(y, sk + j * LD + d, LD);
                wmma::mma_sync(score, x, y, score);
            }
            wmma::store_matrix_sync(ss + warp * 16 * LS + j, score, LS, wmma::mem_row_major);
        }
        __syncwarp();

        // The first key is visible to every query, so the maximum is finite from the first tile on.
        const int seen = (CAUSAL ? min(S, first + row + 1) : S) - begin;
        float high = top;
        for (int n = part; n < part + 16; ++n)
            if (n < seen) high = fmaxf(high, ss[row * LS + n] * scale);
        high = fmaxf(high, __shfl_xor_sync(0xffffffffu, high, 1));
        const float shrink = __expf(top - high);
        float sum = 0.0f;
        for (int n = part; n < part + 16; ++n) {
            const float p = n < seen ? __expf(ss[row * LS + n] * scale - high) : 0.0f;
            sp[row * LP + n] = __float2half(p);
            sum += p;
        }
        sum += __shfl_xor_sync(0xffffffffu, sum, 1);
        total = total * shrink + sum;
        top = high;
        for (int c = lane % 2; c < D; c += 2) so[row * LO + c] *= shrink;
        __syncwarp();

        for (int c = 0; c < D; c += 16) {
            wmma::fragment<wmma::accumulator, 16, 16, 16, float> sums;
            wmma::load_matrix_sync(sums, so + warp * 16 * LO + c, LO, wmma::mem_row_major);
            for (int j = 0; j < KEYS; j += 16) {
                wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> x;
                wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::row_major> y;
                wmma::load_matrix_sync(x, sp + warp * 16 * LP + j, LP);
                wmma::load_matrix_sync(y, sv + j * LD + c, LD);
                wmma::mma_sync(sums, x, y, sums);
            }
            wmma::store_matrix_sync(so + warp * 16 * LO + c, sums, LO, wmma::mem_row_major);
        }
        __syncwarp();
    }

    if (first + row >= S) return;
    for (int c = lane % 2 * 2; c < D; c += 4)
        *reinterpret_cast<half2*>(out + head + size_t(first + row) * D + c) =
            __floats2half2_rn(so[row * LO + c] / total, so[row * LO + c + 1] / total);
}
