/* evoengine
name: sdpa_v2c_wmma_qk
precision: fp16
summary: streaming-softmax attention, Q@K^T on tensor cores (WMMA), P@V scalar
tunables:
  BLOCK_M: [64, 32, 128]      # query rows of a block; half as many at D=128
  BLOCK_N: [64, 32, 16, 128]  # keys of a tile
  WARPS: [8, 4, 16]
let:
  M: BLOCK_M if D <= 64 else BLOCK_M // 2
  SHARED: 2*M*(D+8) + 2*D*(BLOCK_N+8) + 2*BLOCK_N*D + 4*M*(BLOCK_N+4)
require:
  - M % WARPS == 0 and 32 % (M // WARPS) == 0  # a warp shares its lanes out among its rows
  - M * D <= 1024 * WARPS                      # at most 32 output sums a thread, or they spill
  - SHARED <= MAX_SHARED_BYTES
launches:
  - kernel: sdpa<D, M, causal>
    grid: ["ceil_div(S, M)", "B*H"]
    block: ["WARPS*32"]
    shared: SHARED
    args: [q, k, v, out, S, scale]
*/
// One block computes M rows of one head and walks over the keys in tiles of BLOCK_N. Only one
// tile of scores ever exists: the softmax is carried along as a running maximum m and sum l a row.
//
// The kernel divides its work in two ways. For Q@K^T the warps share out 16x16 squares of the
// score tile; for softmax and P@V every warp owns M/WARPS consecutive rows. Scores therefore
// go through shared memory and across a block-wide barrier.
#include <cuda_fp16.h>
#include <mma.h>

using namespace nvcuda;

constexpr int N = BLOCK_N, THREADS = 32 * WARPS;
// Padding shifts successive rows by 16 bytes, so that the 8 rows which a fragment load touches at
// once fall into different banks. 16 bytes is also the granule WMMA demands of a leading dimension.
constexpr int PAD_H = 8, PAD_F = 4;
constexpr int KT_LD = N + PAD_H, S_LD = N + PAD_F;

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
__device__ __forceinline__ void cp_async_wait_all() { asm volatile("cp.async.wait_all;" ::: "memory"); }

// Starts copying rows first..first+COUNT-1 of a head to dst; rows from S on become zeros. The source
// address of such a row is clamped, because even an unused address must lie in the buffer.
template <int D, int COUNT, int LD>
__device__ __forceinline__ void copy_rows(__half* dst, const __half* head, int first, int S) {
    for (int i = threadIdx.x; i < COUNT * D / 8; i += THREADS) {
        const int r = i / (D / 8), c = i % (D / 8) * 8;
        const bool valid = first + r < S;
        cp_async16(dst + r * LD + c, head + (valid ? size_t(first + r) * D + c : 0), valid);
    }
}

// Stores keys first..first+N-1 transposed: channel c of key n goes to dst[c][n]. A thread takes 8
// channels of two neighbouring keys and writes them as pairs; neighbouring lanes take neighbouring
// pairs, so a warp's stores run along a row and hit every bank once. The price is a global read in
// pieces of 16 bytes, whose other half the L1 cache serves to the next pieces.
template <int D>
__device__ __forceinline__ void load_k_transposed(__half* dst, const __half* head, int first, int S) {
    for (int i = threadIdx.x; i < N / 2 * (D / 8); i += THREADS) {
        const int n = i % (N / 2) * 2, c = i / (N / 2) * 8;
        uint4 key[2];
        for (int j = 0; j < 2; ++j) {
            const int row = first + n + j;
            key[j] = row < S ? *reinterpret_cast<const uint4*>(head + size_t(row) * D + c)
                             : make_uint4(0, 0, 0, 0);
        }
        const __half* a = reinterpret_cast<const __half*>(&key[0]);
        const __half* b = reinterpret_cast<const __half*>(&key[1]);
#pragma unroll
        for (int j = 0; j < 8; ++j) {
            *reinterpret_cast<__half2*>(dst + (c + j) * KT_LD + n) = __halves2half2(a[j], b[j]);
        }
    }
}

template <int D, int M, bool CAUSAL>
__global__ void __launch_bounds__(THREADS)
sdpa(const __half* __restrict__ q, const __half* __restrict__ k, const __half* __restrict__ v,
     __half* __restrict__ out, int S, float scale) {
    constexpr int Q_LD = D + PAD_H;
    constexpr int ROWS = M / WARPS;         // rows that one warp owns
    constexpr int LANES_A_ROW = 32 / ROWS;  // lanes that share one row in the softmax
    constexpr int PAIRS = D / 64;  // channel pairs of a lane: channels 2*lane + 64*i and the next one

    extern __shared__ __align__(128) unsigned char shared[];
    __half* sQ = reinterpret_cast<__half*>(shared);          // [M][Q_LD]
    __half* sKt = sQ + M * Q_LD;                             // [D][KT_LD]
    __half* sV = sKt + D * KT_LD;                            // [N][D]
    float* sS = reinterpret_cast<float*>(sV + N * D);        // [M][S_LD] scores, then probabilities

    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int q0 = blockIdx.x * M;
    const size_t head = size_t(blockIdx.y) * S * D;
    const float scale_log2 = scale * 1.44269504f;  // log2(e)
    const float minus_inf = __int_as_float(0xff800000);

    // In P@V a lane holds its channels of all rows of the warp; in the softmax it serves one row.
    float o[ROWS][2 * PAIRS] = {};
    const int my_row = warp * ROWS + lane / LANES_A_ROW, part = lane % LANES_A_ROW;
    float m = minus_inf;  // maximum of my_row: the same in all lanes that share it
    float l = 0.0f;       // sum over this lane's keys only; the parts are added after the last tile

    copy_rows<D, M, Q_LD>(sQ, q + head, q0, S);
    const int kv_end = CAUSAL ? min(S, q0 + M) : S;  // no row of this block sees a later key

    for (int kv0 = 0; kv0 < kv_end; kv0 += N) {
        // Safe without a barrier: K is read before the previous tile's second barrier only.
        load_k_transposed<D>(sKt, k + head, kv0, S);
        cp_async_wait_all();  // Q, in the first round
        __syncthreads();      // K and Q complete; every warp is done with the previous scores and V
        copy_rows<D, N, D>(sV, v + head, kv0, S);  // travels while the tensor cores work

        // Scores. K by columns and K^T by rows are the same bytes, so B = K^T is a row_major fragment.
        for (int t = warp; t < (M / 16) * (N / 16); t += WARPS) {
            const int i = t % (M / 16) * 16, j = t / (M / 16) * 16;
            wmma::fragment<wmma::accumulator, 16, 16, 16, float> acc;
            wmma::fill_fragment(acc, 0.0f);
#pragma unroll 4
            for (int c = 0; c < D; c += 16) {
                wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> a;
                wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::row_major> b;
                wmma::load_matrix_sync(a, sQ + i * Q_LD + c, Q_LD);
                wmma::load_matrix_sync(b, sKt + c * KT_LD + j, KT_LD);
                wmma::mma_sync(acc, a, b, acc);
            }
            wmma::store_matrix_sync(sS + i * S_LD + j, acc, S_LD, wmma::mem_row_major);
        }
        cp_async_wait_all();
        __syncthreads();  // scores and V complete; K may be overwritten

        // Softmax. Key 0 is visible to every row, so m is finite after the first tile and
        // (-inf) - (-inf) cannot arise.
        float* scores = sS + my_row * S_LD;
        const int seen = (CAUSAL ? min(S, q0 + my_row + 1) : S) - kv0;  // keys of this tile my_row sees
        float top = m;
#pragma unroll 4
        for (int n = part; n < N; n += LANES_A_ROW) {
            if (n < seen) top = fmaxf(top, scores[n] * scale_log2);
        }
#pragma unroll
        for (int d = 1; d < LANES_A_ROW; d *= 2) top = fmaxf(top, __shfl_xor_sync(~0u, top, d));
        const float shrink = exp2_approx(m - top);
        m = top;
        l *= shrink;
#pragma unroll 4
        for (int n = part; n < N; n += LANES_A_ROW) {
            const float p = n < seen ? exp2_approx(scores[n] * scale_log2 - m) : 0.0f;
            scores[n] = p;
            l += p;
        }
#pragma unroll
        for (int r = 0; r < ROWS; ++r) {
            const float shrink_r = __shfl_sync(~0u, shrink, r * LANES_A_ROW);
#pragma unroll
            for (int i = 0; i < 2 * PAIRS; ++i) o[r][i] *= shrink_r;
        }
        __syncwarp();  // the probabilities were written by this warp and are read by it alone

        // P@V. A lane keeps its channels of all the warp's rows, so that a value of V which it reads
        // serves ROWS rows, and the probabilities of KEYS keys come as one broadcast. Fewer keys at
        // a time for D=128, where each is twice as long and registers would run out.
        constexpr int KEYS = 256 / D;
#pragma unroll 1
        for (int n = 0; n < N; n += KEYS) {
            float2 val[KEYS][PAIRS];
#pragma unroll
            for (int j = 0; j < KEYS; ++j) {
#pragma unroll
                for (int i = 0; i < PAIRS; ++i) {
                    val[j][i] = __half22float2(
                        *reinterpret_cast<const __half2*>(sV + (n + j) * D + 64 * i + 2 * lane));
                }
            }
#pragma unroll
            for (int r = 0; r < ROWS; ++r) {
                struct alignas(4 * KEYS) Probabilities { float of[KEYS]; };
                const auto p = *reinterpret_cast<const Probabilities*>(sS + (warp * ROWS + r) * S_LD + n);
#pragma unroll
                for (int j = 0; j < KEYS; ++j) {
#pragma unroll
                    for (int i = 0; i < PAIRS; ++i) {
                        o[r][2 * i] += p.of[j] * val[j][i].x;
                        o[r][2 * i + 1] += p.of[j] * val[j][i].y;
                    }
                }
            }
        }
    }

#pragma unroll
    for (int d = 1; d < LANES_A_ROW; d *= 2) l += __shfl_xor_sync(~0u, l, d);
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
        const float inv = 1.0f / __shfl_sync(~0u, l, r * LANES_A_ROW);
        const int row = q0 + warp * ROWS + r;
        if (row >= S) continue;
#pragma unroll
        for (int i = 0; i < PAIRS; ++i) {
            *reinterpret_cast<__half2*>(out + head + size_t(row) * D + 64 * i + 2 * lane) =
                __floats2half2_rn(o[r][2 * i] * inv, o[r][2 * i + 1] * inv);
        }
    }
}
