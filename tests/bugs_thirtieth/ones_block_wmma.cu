/* evoengine
name: ones_block_wmma
precision: fp16
summary: WMMA 32x8x16; the values have a block of columns more whose first is all ones, so that the second product also yields the softmax sums
let:
  TQ: 32
  TK: 64
  QK_BYTES: 2 * (TQ + TK) * (D + 8)
  V_BYTES: 2 * TK * (D + 8)
  P_BYTES: 4 * TQ * (TK + 4) + 2 * TQ * (TK + 8)
  RESCALE_BYTES: 4 * TQ * 8
launches:
  - kernel: ones_attention<D, causal>
    grid: ["ceil_div(S, TQ) * B*H"]
    block: [128]
    shared: QK_BYTES + V_BYTES + P_BYTES + RESCALE_BYTES
    args: [q, k, v, out, S, scale]
*/
#include <cuda_fp16.h>
#include <mma.h>

using namespace nvcuda;

// All sizes of the problem's tiles in one place.
template <int HeadDim> struct Shape {
    static constexpr int kDim = HeadDim;
    static constexpr int kQueries = 32, kKeys = 64, kWarps = 4, kThreads = 128;
    static constexpr int kRowPitch = kDim + 8;             // halves; queries and keys
    static constexpr int kScorePitch = kKeys + 4;          // floats
    static constexpr int kWeightPitch = kKeys + 8;         // halves
    static constexpr int kBlocks = kDim / 8 + 1;           // blocks of 8 columns: the values', and the ones
    static constexpr int kPerWarp = (kBlocks + kWarps - 1) / kWarps;
    static constexpr int kOutPitch = kDim + 12;            // floats
};

using FragQ = wmma::fragment<wmma::matrix_a, 32, 8, 16, half, wmma::row_major>;
using FragK = wmma::fragment<wmma::matrix_b, 32, 8, 16, half, wmma::col_major>;
using FragV = wmma::fragment<wmma::matrix_b, 32, 8, 16, half, wmma::row_major>;
using FragAcc = wmma::fragment<wmma::accumulator, 32, 8, 16, float>;

namespace async {
__device__ __forceinline__ void copy16(half* dst, const half* src, bool valid) {
    const unsigned to = static_cast<unsigned>(__cvta_generic_to_shared(dst));
    const int bytes = valid ? 16 : 0;                      // the rest of the 16 becomes zero
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" : : "r"(to), "l"(src), "r"(bytes) : "memory");
}
__device__ __forceinline__ void close_group() { asm volatile("cp.async.commit_group;" : : : "memory"); }
template <int kOpen> __device__ __forceinline__ void all_but() { asm volatile("cp.async.wait_group %0;" : : "n"(kOpen) : "memory"); }
}  // namespace async

// Rows [first, first + kCount) of a head, row after row.
template <class Sh, int kCount>
__device__ __forceinline__ void fetch_rows(half* dst, const half* src, int first, int S) {
    constexpr int kPieces = Sh::kDim / 8;
    for (int i = threadIdx.x; i < kCount * kPieces; i += Sh::kThreads) {
        const int row = i / kPieces, piece = i % kPieces;
        const bool valid = first + row < S;
        async::copy16(dst + row * Sh::kRowPitch + piece * 8, src + size_t(valid ? first + row : 0) * Sh::kDim + piece * 8, valid);
    }
}

// Values: block after block of 8 columns, [kDim / 8][kKeys][8], so that every fragment begins at a multiple of 32 bytes.
template <class Sh>
__device__ __forceinline__ void fetch_value_blocks(half* dst, const half* src, int first, int S) {
    constexpr int kPieces = Sh::kDim / 8;
    for (int i = threadIdx.x; i < Sh::kKeys * kPieces; i += Sh::kThreads) {
        const int row = i / kPieces, block = i % kPieces;
        const bool valid = first + row < S;
        async::copy16(dst + (block * Sh::kKeys + row) * 8, src + size_t(valid ? first + row : 0) * Sh::kDim + block * 8, valid);
    }
}

template <int kHeadDim, bool kCausal>
__global__ void __launch_bounds__(128)
ones_attention(const half* __restrict__ q, const half* __restrict__ k, const half* __restrict__ v, half* __restrict__ out, int S,
               float scale) {
    using Sh = Shape<kHeadDim>;
    extern __shared__ __align__(128) unsigned char raw[];
    half* sq = reinterpret_cast<half*>(raw);
    half* sk = sq + Sh::kQueries * Sh::kRowPitch;
    half* sv = sk + Sh::kKeys * Sh::kRowPitch;
    float* scores = reinterpret_cast<float*>(sv + Sh::kBlocks * Sh::kKeys * 8);
    half* weights = reinterpret_cast<half*>(scores + Sh::kQueries * Sh::kScorePitch);
    float* rescale = reinterpret_cast<float*>(weights + Sh::kQueries * Sh::kWeightPitch);   // [kQueries][8]: a row's factor 8 times

    const int tiles_q = (S + Sh::kQueries - 1) / Sh::kQueries;
    const int first_query = (tiles_q - 1 - int(blockIdx.x) % tiles_q) * Sh::kQueries;         // long causal rows first
    const size_t head = size_t(blockIdx.x / tiles_q) * S * Sh::kDim;
    const int warp = threadIdx.x / 32;
    const int my_row = threadIdx.x / 4, my_part = threadIdx.x % 4;                           // softmax: four threads a row
    const float to_log2 = scale * 1.4426950408889634f;

    const int end = kCausal ? min(S, first_query + Sh::kQueries) : S;
    const int tiles = (end + Sh::kKeys - 1) / Sh::kKeys;

    fetch_rows<Sh, Sh::kQueries>(sq, q + head, first_query, S);
    fetch_rows<Sh, Sh::kKeys>(sk, k + head, 0, S);
    async::close_group();
    fetch_value_blocks<Sh>(sv, v + head, 0, S);
    async::close_group();
    for (int i = threadIdx.x; i < Sh::kKeys * 8; i += Sh::kThreads)
        sv[Sh::kDim / 8 * Sh::kKeys * 8 + i] = __float2half(i % 8 == 0 ? 1.0f : 0.0f);

    FragAcc acc[Sh::kPerWarp];
    for (int i = 0; i < Sh::kPerWarp; ++i) wmma::fill_fragment(acc[i], 0.0f);
    float high = -INFINITY;

    for (int tile = 0; tile < tiles; ++tile) {
        const int start = tile * Sh::kKeys;
        async::all_but<1>();       // keys
        __syncthreads();
        for (int n = warp; n < Sh::kKeys / 8; n += Sh::kWarps) {
            FragAcc s;
            wmma::fill_fragment(s, 0.0f);
            for (int d = 0; d < Sh::kDim; d += 16) {
                FragQ a;
                FragK b;
                wmma::load_matrix_sync(a, sq + d, Sh::kRowPitch);
                wmma::load_matrix_sync(b, sk + n * 8 * Sh::kRowPitch + d, Sh::kRowPitch);
                wmma::mma_sync(s, a, b, s);
            }
            wmma::store_matrix_sync(scores + n * 8, s, Sh::kScorePitch, wmma::mem_row_major);
        }
        __syncthreads();           // the scores are there, and the keys are no longer needed
        if (tile + 1 < tiles) fetch_rows<Sh, Sh::kKeys>(sk, k + head, start + Sh::kKeys, S);
        async::close_group();

        float x[Sh::kKeys / 4], top = high;
        for (int i = 0; i < Sh::kKeys / 4; ++i) {
            const int c = i * 4 + my_part;
            const bool visible = start + c < S && (!kCausal || start + c <= first_query + my_row);
            x[i] = visible ? scores[my_row * Sh::kScorePitch + c] * to_log2 : -INFINITY;
            top = fmaxf(top, x[i]);
        }
        top = fmaxf(top, __shfl_xor_sync(~0u, top, 1));
        top = fmaxf(top, __shfl_xor_sync(~0u, top, 2));
        const float factor = exp2f(high - top);            // the first tile holds a key for every row: `top` is finite
        high = top;
        rescale[my_row * 8 + my_part] = rescale[my_row * 8 + my_part + 4] = factor;
        for (int i = 0; i < Sh::kKeys / 4; ++i)
            weights[my_row * Sh::kWeightPitch + i * 4 + my_part] = __float2half(exp2f(x[i] - top));

        async::all_but<1>();       // values
        __syncthreads();
        FragAcc f;
        wmma::load_matrix_sync(f, rescale, 8, wmma::mem_row_major);
        for (int i = 0; i < Sh::kPerWarp; ++i) {
            const int block = warp + i * Sh::kWarps;
            if (block < Sh::kBlocks)                       // the sums in the last block shrink like the rest
                for (int e = 0; e < f.num_elements; ++e) acc[i].x[e] *= f.x[e];
        }
        for (int j = 0; j < Sh::kKeys; j += 16) {
            FragQ p;
            wmma::load_matrix_sync(p, weights + j, Sh::kWeightPitch);
            for (int i = 0; i < Sh::kPerWarp; ++i) {
                const int block = warp + i * Sh::kWarps;
                if (block >= Sh::kBlocks) break;
                FragV b;
                wmma::load_matrix_sync(b, sv + (block * Sh::kKeys + j) * 8, 8);
                wmma::mma_sync(acc[i], p, b, acc[i]);
            }
        }
        __syncthreads();           // before the values, the weights and the scores are overwritten
        if (tile + 1 < tiles) fetch_value_blocks<Sh>(sv, v + head, start + Sh::kKeys, S);
        async::close_group();
    }

    // Queries and keys make room for the results; column kDim holds the sums.
    float* result = reinterpret_cast<float*>(raw);
    for (int i = 0; i < Sh::kPerWarp; ++i) {
        const int block = warp + i * Sh::kWarps;
        if (block < Sh::kBlocks) wmma::store_matrix_sync(result + block * 8, acc[i], Sh::kOutPitch, wmma::mem_row_major);
    }
    __syncthreads();
    for (int i = threadIdx.x; i < Sh::kQueries * (Sh::kDim / 2); i += Sh::kThreads) {
        const int row = i / (Sh::kDim / 2), c = i % (Sh::kDim / 2) * 2;
        if (first_query + row >= S) break;
        const float* from = result + row * Sh::kOutPitch;
        const float inverse = 1.0f / from[Sh::kDim];
        *reinterpret_cast<half2*>(out + head + size_t(first_query + row) * Sh::kDim + c) =
            __floats2half2_rn(from[c] * inverse, from[c + 1] * inverse);
    }
}
