/* evoengine
name: sdpa_v2c_wmma
precision: fp16
summary: streaming-softmax attention, Q@K^T and P@V on tensor cores (WMMA), K/V pipelined with cp.async
tunables:
  BLOCK_M: [64, 32, 16, 128]  # query rows of a block: 16 for every warp
  BLOCK_N: [64, 32, 128]      # keys of a tile; half as many at D=128
  STAGES: [2, 3, 4]           # K/V tiles in flight or in use
let:
  N: BLOCK_N if D <= 64 else BLOCK_N // 2
  SHARED: 2*BLOCK_M*(D+8) + 4*STAGES*N*(D+8) + 4*BLOCK_M*(N+4) + 4*BLOCK_M
require: [SHARED <= MAX_SHARED_BYTES]
launches:
  - kernel: sdpa<D, N, causal>
    grid: ["ceil_div(S, BLOCK_M)", "B*H"]
    block: [2*BLOCK_M]
    shared: SHARED
    args: [q, k, v, out, S, scale]
*/
// One block computes BLOCK_M rows of one head and walks over the keys in tiles of N. Every warp owns
// 16 rows from beginning to end: their scores, statistics and output. Warps therefore synchronise only
// once per K/V tile.
//
// WMMA does not specify which thread holds which element of a fragment, so whatever depends on an
// element's row goes through shared memory: scores are stored there, and the factors that rescale the
// rows of the output are loaded from there as a fragment.
#include <cuda_fp16.h>
#include <mma.h>

using namespace nvcuda;

constexpr int M = BLOCK_M, THREADS = 2 * BLOCK_M;
// Padding shifts successive rows by 16 bytes, so that the 8 rows which a fragment load touches at
// once fall into different banks. 16 bytes is also the granule WMMA demands of a leading dimension.
constexpr int PAD_H = 8, PAD_F = 4;

using FragA = wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major>;
using FragBRows = wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::row_major>;
using FragBColumns = wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::col_major>;
using FragSum = wmma::fragment<wmma::accumulator, 16, 16, 16, float>;

// 2^x in one instruction. Scores carry log2(e) in their scale, so e^x is never needed.
__device__ __forceinline__ float exp2_approx(float x) {
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

// Copies 16 bytes from global to shared memory past the registers; writes zeros if not `valid`.
__device__ __forceinline__ void cp_async16(void* dst, const void* src, bool valid) {
    const unsigned to = static_cast<unsigned>(__cvta_generic_to_shared(dst));
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                 :: "r"(to), "l"(src), "r"(valid ? 16 : 0) : "memory");
}
__device__ __forceinline__ void cp_async_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
// Waits until at most PENDING of the latest groups are still on their way.
template <int PENDING>
__device__ __forceinline__ void cp_async_wait() {
    asm volatile("cp.async.wait_group %0;" :: "n"(PENDING) : "memory");
}

// Starts copying rows first..first+COUNT-1 of a head to dst; rows from S on become zeros, because a
// probability of 0 times whatever lay there must not be NaN. The source address of such a row is
// clamped, because even an unused address must lie in the buffer.
template <int D, int COUNT>
__device__ __forceinline__ void copy_rows(__half* dst, const __half* head, int first, int S) {
    for (int i = threadIdx.x; i < COUNT * D / 8; i += THREADS) {
        const int r = i / (D / 8), c = i % (D / 8) * 8;
        const bool valid = first + r < S;
        cp_async16(dst + r * (D + PAD_H) + c, head + (valid ? size_t(first + r) * D + c : 0), valid);
    }
}

template <int D, int N, bool CAUSAL>
__global__ void __launch_bounds__(THREADS)
sdpa(const __half* __restrict__ q, const __half* __restrict__ k, const __half* __restrict__ v,
     __half* __restrict__ out, int S, float scale) {
    constexpr int LD = D + PAD_H, S_LD = N + PAD_F;

    extern __shared__ __align__(128) unsigned char shared[];
    __half* sQ = reinterpret_cast<__half*>(shared);              // [M][LD]
    __half* sK = sQ + M * LD;                                    // [STAGES][N][LD]
    __half* sV = sK + STAGES * N * LD;                           // [STAGES][N][LD]
    float* sS = reinterpret_cast<float*>(sV + STAGES * N * LD);  // [M][S_LD]
    float* sShrink = sS + M * S_LD;                              // [M]

    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int q0 = blockIdx.x * M;
    const size_t head = size_t(blockIdx.y) * S * D;
    const float scale_log2 = scale * 1.44269504f;  // log2(e)
    const float minus_inf = __int_as_float(0xff800000);

    // This warp's 16 rows of each buffer. Two lanes share a row, half a tile of keys each.
    const __half* my_q = sQ + warp * 16 * LD;
    float* my_scores = sS + warp * 16 * S_LD;
    float* my_shrink = sShrink + warp * 16;
    const int r = lane % 16, half = lane / 16;
    const int row = q0 + warp * 16 + r;
    float m = minus_inf;  // running maximum of the row, the same in both lanes
    float l = 0.0f;       // running sum over this lane's keys; the two halves are added after the last tile

    FragSum o[D / 16];
#pragma unroll
    for (int d = 0; d < D / 16; ++d) wmma::fill_fragment(o[d], 0.0f);

    const int kv_end = CAUSAL ? min(S, q0 + M) : S;  // no row of this block sees a later key
    const int tiles = (kv_end + N - 1) / N;
    auto copy_tile = [&](int t) {
        if (t < tiles) {
            copy_rows<D, N>(sK + t % STAGES * N * LD, k + head, t * N, S);
            copy_rows<D, N>(sV + t % STAGES * N * LD, v + head, t * N, S);
        }
        cp_async_commit();  // also when empty, so that groups can be counted in tiles
    };
    copy_rows<D, M>(sQ, q + head, q0, S);  // in one group with tile 0
    for (int t = 0; t < STAGES - 1; ++t) copy_tile(t);

    for (int t = 0; t < tiles; ++t) {
        cp_async_wait<STAGES - 2>();  // this thread's part of tile t has arrived
        __syncthreads();              // everyone's has, and everyone is done with tile t-1,
        copy_tile(t + STAGES - 1);    // whose place this tile takes
        const __half* tile_k = sK + t % STAGES * N * LD;
        const __half* tile_v = sV + t % STAGES * N * LD;

        // Scores. K stays as it is: its rows, read as columns, are K^T.
        {
            FragSum acc[N / 16];
#pragma unroll
            for (int j = 0; j < N / 16; ++j) wmma::fill_fragment(acc[j], 0.0f);
#pragma unroll
            for (int c = 0; c < D; c += 16) {
                FragA a;
                wmma::load_matrix_sync(a, my_q + c, LD);
#pragma unroll
                for (int j = 0; j < N / 16; ++j) {
                    FragBColumns b;
                    wmma::load_matrix_sync(b, tile_k + j * 16 * LD + c, LD);
                    wmma::mma_sync(acc[j], a, b, acc[j]);
                }
            }
#pragma unroll
            for (int j = 0; j < N / 16; ++j) {
                wmma::store_matrix_sync(my_scores + j * 16, acc[j], S_LD, wmma::mem_row_major);
            }
        }
        __syncwarp();

        // Softmax. Key 0 is visible to every row, so m is finite after the first tile and
        // (-inf) - (-inf) cannot arise.
        const int seen = (CAUSAL ? min(S, row + 1) : S) - t * N - half * (N / 2);  // of my half tile
        alignas(16) float s[N / 2];
        float top = m;
#pragma unroll
        for (int n = 0; n < N / 2; n += 4) {
            *reinterpret_cast<float4*>(s + n) =
                *reinterpret_cast<const float4*>(my_scores + r * S_LD + half * (N / 2) + n);
        }
#pragma unroll
        for (int n = 0; n < N / 2; ++n) {
            s[n] = n < seen ? s[n] * scale_log2 : minus_inf;
            top = fmaxf(top, s[n]);
        }
        top = fmaxf(top, __shfl_xor_sync(~0u, top, 16));
        const float shrink = exp2_approx(m - top);
        m = top;
        l *= shrink;
        __syncwarp();  // all scores are in registers: the probabilities may take their place
        __half* my_p = reinterpret_cast<__half*>(my_scores);  // same rows, twice the leading dimension
#pragma unroll
        for (int n = 0; n < N / 2; n += 8) {
            alignas(16) __half2 p[4];
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                p[i] = __floats2half2_rn(exp2_approx(s[n + 2 * i] - m), exp2_approx(s[n + 2 * i + 1] - m));
                // Summing what was rounded makes the weights add up to 1: a weight's error then
                // counts only as far as its value differs from the mean that is being formed.
                const float2 rounded = __half22float2(p[i]);
                l += rounded.x + rounded.y;
            }
            *reinterpret_cast<uint4*>(my_p + r * 2 * S_LD + half * (N / 2) + n) =
                *reinterpret_cast<const uint4*>(p);
        }
        if (half == 0) my_shrink[r] = shrink;
        __syncwarp();

        // Online rescale. With a leading dimension of 0 every column of this fragment is the same 16
        // factors, so that element e of it belongs to the row of element e of any accumulator.
        FragSum factor;
        wmma::load_matrix_sync(factor, my_shrink, 0, wmma::mem_col_major);
#pragma unroll
        for (int d = 0; d < D / 16; ++d) {
#pragma unroll
            for (int e = 0; e < factor.num_elements; ++e) o[d].x[e] *= factor.x[e];
        }
#pragma unroll
        for (int n = 0; n < N; n += 16) {
            FragA p;
            wmma::load_matrix_sync(p, my_p + n, 2 * S_LD);
#pragma unroll
            for (int d = 0; d < D / 16; ++d) {
                FragBRows b;
                wmma::load_matrix_sync(b, tile_v + n * LD + d * 16, LD);
                wmma::mma_sync(o[d], p, b, o[d]);
            }
        }
    }

    // Output, 16 columns at a time through the score buffer, 8 of them a lane.
    __syncwarp();  // the last probabilities have been read from it
    l += __shfl_xor_sync(~0u, l, 16);
    const float inv = 1.0f / l;
#pragma unroll
    for (int d = 0; d < D / 16; ++d) {
        wmma::store_matrix_sync(my_scores, o[d], S_LD, wmma::mem_row_major);
        __syncwarp();
        alignas(16) __half2 h[4];
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const float2 x = *reinterpret_cast<const float2*>(my_scores + r * S_LD + half * 8 + 2 * i);
            h[i] = __floats2half2_rn(x.x * inv, x.y * inv);
        }
        if (row < S) {
            *reinterpret_cast<uint4*>(out + head + size_t(row) * D + d * 16 + half * 8) =
                *reinterpret_cast<const uint4*>(h);
        }
        __syncwarp();
    }
}
