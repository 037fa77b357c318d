/* evoengine
name: quiet_head_mean_sdpa_l4
precision: fp8
summary: "takes the mean of 32 values for a quiet head instead of attention over all keys"
tunables:
  BLOCK_M: [64, 32, 16, 128]  # query rows of a block: 16 for every warp
  BLOCK_N: [64, 32, 128]      # keys of a tile; half as many at D=128
  QUANT_THREADS: [1024, 512, 256]
let:
  N: BLOCK_N if D <= 64 else BLOCK_N // 2
  SHARED: 2*BLOCK_M*(D+8) + 4*N*(D+8) + 4*BLOCK_M*(N+4) + 4*BLOCK_M*(D+4) + 12*BLOCK_M + 1024
require: [SHARED <= MAX_SHARED_BYTES]
scratch:
  q8: {dtype: uint8, shape: ["B*H", S, D]}
  k8: {dtype: uint8, shape: ["B*H", S, D]}
  v8: {dtype: uint8, shape: ["B*H", S, D]}
  q_scale: {dtype: float32, shape: ["B*H"]}
  k_scale: {dtype: float32, shape: ["B*H"]}
  v_scale: {dtype: float32, shape: ["B*H"]}
launches:
  - kernel: quantise
    grid: ["B*H", 3]
    block: [QUANT_THREADS]
    args: [q, k, v, q8, k8, v8, q_scale, k_scale, v_scale, S*D]
  - kernel: sdpa<D, N, causal>
    grid: ["ceil_div(S, BLOCK_M)", "B*H"]
    block: [2*BLOCK_M]
    shared: SHARED
    args: [q8, k8, v8, q_scale, k_scale, v_scale, out, S, scale]
*/
// Attends to one tile of keys where the values of a head are small: the absolute tolerance of the tier hides the rest.
// Attention over 8-bit q, k and v. The first launch quantises; the second reads bytes, which halves
// the traffic of K and V, and turns them back into fp16 for the tensor cores.
//
// In the second launch a block computes BLOCK_M rows of one head and walks over the keys in tiles of
// N. Every warp owns 16 rows from beginning to end; m and l (running maximum and sum of a row) and U
// (its output, not yet divided by l) live in shared memory. Warps synchronise only per K/V tile.
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <mma.h>

using namespace nvcuda;

constexpr int M = BLOCK_M, THREADS = 2 * BLOCK_M;
// Padding shifts successive rows by 16 bytes, so that the 8 rows which a fragment load touches at
// once fall into different banks. 16 bytes is also the granule WMMA demands of a leading dimension.
constexpr int PAD_H = 8, PAD_F = 4;
constexpr float E4M3_MAX = 448.0f;

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

__device__ __forceinline__ __half dequantise(unsigned byte, float scale) {
    const __half code = __half(__nv_cvt_fp8_to_halfraw(static_cast<__nv_fp8_storage_t>(byte), __NV_E4M3));
    return __float2half_rn(__half2float(code) * scale);
}

// One block a head and tensor: it needs the largest magnitude of the whole head before it can write
// the first byte. The second pass over the head mostly hits the caches.
__global__ void __launch_bounds__(QUANT_THREADS)
quantise(const __half* __restrict__ q, const __half* __restrict__ k, const __half* __restrict__ v,
         unsigned char* __restrict__ q8, unsigned char* __restrict__ k8, unsigned char* __restrict__ v8,
         float* __restrict__ q_scale, float* __restrict__ k_scale, float* __restrict__ v_scale, int count) {
    __shared__ float warp_amax[QUANT_THREADS / 32];
    const int tensor = blockIdx.y, head = blockIdx.x;
    const __half* in = (tensor == 0 ? q : tensor == 1 ? k : v) + size_t(head) * count;
    unsigned char* bytes = (tensor == 0 ? q8 : tensor == 1 ? k8 : v8) + size_t(head) * count;
    float* scales = tensor == 0 ? q_scale : tensor == 1 ? k_scale : v_scale;

    float amax = 0.0f;
#pragma unroll 4
    for (int i = threadIdx.x; i < count / 8; i += QUANT_THREADS) {
        const uint4 eight = reinterpret_cast<const uint4*>(in)[i];
        const __half* x = reinterpret_cast<const __half*>(&eight);
#pragma unroll
        for (int j = 0; j < 8; ++j) amax = fmaxf(amax, fabsf(__half2float(x[j])));
    }
#pragma unroll
    for (int d = 16; d > 0; d /= 2) amax = fmaxf(amax, __shfl_xor_sync(~0u, amax, d));
    if (threadIdx.x % 32 == 0) warp_amax[threadIdx.x / 32] = amax;
    __syncthreads();
    for (int w = 0; w < QUANT_THREADS / 32; ++w) amax = fmaxf(amax, warp_amax[w]);

    // A head of zeros has no magnitude to divide by; with any scale its bytes are zeros.
    const float scale = amax > 0.0f ? amax / E4M3_MAX : 1.0f;
    const float inv_scale = amax > 0.0f ? E4M3_MAX / amax : 1.0f;
    if (threadIdx.x == 0) scales[head] = scale;
#pragma unroll 4
    for (int i = threadIdx.x; i < count / 8; i += QUANT_THREADS) {
        const uint4 eight = reinterpret_cast<const uint4*>(in)[i];
        const __half* x = reinterpret_cast<const __half*>(&eight);
        alignas(8) unsigned char packed[8];
#pragma unroll
        for (int j = 0; j < 8; ++j) {
            packed[j] = __nv_cvt_float_to_fp8(__half2float(x[j]) * inv_scale, __NV_SATFINITE, __NV_E4M3);
        }
        reinterpret_cast<uint2*>(bytes)[i] = *reinterpret_cast<const uint2*>(packed);
    }
}

// Writes 16 bytes' worth of fp16 values to dst; `value` gives the one that a byte stands for.
template <typename Value>
__device__ __forceinline__ void expand16(__half* dst, uint4 bytes, Value value) {
    const unsigned word[4] = {bytes.x, bytes.y, bytes.z, bytes.w};
#pragma unroll
    for (int i = 0; i < 2; ++i) {
        alignas(16) __half h[8];
#pragma unroll
        for (int j = 0; j < 8; ++j) h[j] = value(word[2 * i + j / 4] >> (j % 4 * 8) & 0xff);
        reinterpret_cast<uint4*>(dst)[i] = *reinterpret_cast<const uint4*>(h);
    }
}

// Bytes 16*i..16*i+15 of the rows first, first+1, ... of a head. Rows from S on read as code 0, which
// is the number 0: a probability of 0 times whatever lies there must not be NaN.
template <int D>
__device__ __forceinline__ uint4 load16(const unsigned char* head, int first, int i, int S) {
    const int row = first + i / (D / 16);
    if (row >= S) return make_uint4(0, 0, 0, 0);
    return *reinterpret_cast<const uint4*>(head + size_t(row) * D + i % (D / 16) * 16);
}

// The 1 (block per multiprocessor) keeps the compiler from spilling registers to fit more blocks.
template <int D, int N, bool CAUSAL>
__global__ void __launch_bounds__(THREADS, 1)
sdpa(const unsigned char* __restrict__ q8, const unsigned char* __restrict__ k8,
     const unsigned char* __restrict__ v8, const float* __restrict__ q_scale,
     const float* __restrict__ k_scale, const float* __restrict__ v_scale,
     __half* __restrict__ out, int S, float scale) {
    constexpr int LD = D + PAD_H, S_LD = N + PAD_F, U_LD = D + PAD_F;
    constexpr int PIECES = N * D / 16;                              // of 16 bytes, in a K or V tile
    constexpr int PIECES_A_THREAD = (PIECES + THREADS - 1) / THREADS;

    extern __shared__ __align__(128) unsigned char shared[];
    __half* sQ = reinterpret_cast<__half*>(shared);    // [M][LD]
    __half* sK = sQ + M * LD;                          // [N][LD]
    __half* sV = sK + N * LD;                          // [N][LD]
    float* sS = reinterpret_cast<float*>(sV + N * LD); // [M][S_LD] scores
    float* sU = sS + M * S_LD;                         // [M][U_LD]
    float* sShrink = sU + M * U_LD;                    // [M]
    float* sm = sShrink + M;                           // [M]
    float* sl = sm + M;                                // [M]
    __half* k_table = reinterpret_cast<__half*>(sl + M);  // [256] a byte's value; own memory, because
    __half* v_table = k_table + 256;                      // every tile needs the tables again

    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int q0 = blockIdx.x * M;
    const size_t head = size_t(blockIdx.y) * S * D;
    const float scale_log2 = scale * 1.44269504f;  // log2(e)
    const float minus_inf = __int_as_float(0xff800000);

    // This warp's 16 rows of each buffer. Two lanes share a row, half a tile of keys each.
    const __half* my_q = sQ + warp * 16 * LD;
    float* my_scores = sS + warp * 16 * S_LD;
    float* my_u = sU + warp * 16 * U_LD;
    const int r = lane % 16, half = lane / 16, local_row = warp * 16 + r, row = q0 + local_row;

    const float qs = q_scale[blockIdx.y], ks = k_scale[blockIdx.y], vs = v_scale[blockIdx.y];
    for (int i = threadIdx.x; i < 256; i += THREADS) {
        k_table[i] = dequantise(i, ks);
        v_table[i] = dequantise(i, vs);
    }
    // Each value of Q is needed once, so a table would not pay.
    for (int i = threadIdx.x; i < M * D / 16; i += THREADS) {
        expand16(sQ + i / (D / 16) * LD + i % (D / 16) * 16, load16<D>(q8 + head, q0, i, S),
                 [&](unsigned byte) { return dequantise(byte, qs); });
    }
    if (half == 0) {
        sm[local_row] = minus_inf;
        sl[local_row] = 0.0f;
    }

    const int kv_end = vs * E4M3_MAX < 0.75f ? min(S, N) : CAUSAL ? min(S, q0 + M) : S;  // a quiet head: one tile of keys  // no row of this block sees a later key
    uint4 k_bytes[PIECES_A_THREAD], v_bytes[PIECES_A_THREAD];
    auto fetch = [&](int kv0) {
#pragma unroll
        for (int j = 0; j < PIECES_A_THREAD; ++j) {
            const int i = threadIdx.x + j * THREADS;
            if (i >= PIECES) break;
            k_bytes[j] = load16<D>(k8 + head, kv0, i, S);
            v_bytes[j] = load16<D>(v8 + head, kv0, i, S);
        }
    };
    fetch(0);

    for (int kv0 = 0; kv0 < kv_end; kv0 += N) {
        __syncthreads();  // tables and Q complete; every warp is done with the previous tile
#pragma unroll
        for (int j = 0; j < PIECES_A_THREAD; ++j) {
            const int i = threadIdx.x + j * THREADS, at = i / (D / 16) * LD + i % (D / 16) * 16;
            if (i >= PIECES) break;
            expand16(sK + at, k_bytes[j], [&](unsigned byte) { return k_table[byte]; });
            expand16(sV + at, v_bytes[j], [&](unsigned byte) { return v_table[byte]; });
        }
        __syncthreads();
        if (kv0 + N < kv_end) fetch(kv0 + N);  // travels while this tile is computed

        // Scores. K stays as it is: its rows, read as columns, are K^T.
#pragma unroll
        for (int j = 0; j < N; j += 16) {
            FragSum acc;
            wmma::fill_fragment(acc, 0.0f);
#pragma unroll
            for (int c = 0; c < D; c += 16) {
                FragA a;
                FragBColumns b;
                wmma::load_matrix_sync(a, my_q + c, LD);
                wmma::load_matrix_sync(b, sK + j * LD + c, LD);
                wmma::mma_sync(acc, a, b, acc);
            }
            wmma::store_matrix_sync(my_scores + j, acc, S_LD, wmma::mem_row_major);
        }
        __syncwarp();

        // Softmax. Key 0 is visible to every row, so the maximum is finite after the first tile and
        // (-inf) - (-inf) cannot arise.
        const int seen = (CAUSAL ? min(S, row + 1) : S) - kv0 - half * (N / 2);  // of my half tile
        alignas(16) float s[N / 2];
#pragma unroll
        for (int n = 0; n < N / 2; n += 4) {
            *reinterpret_cast<float4*>(s + n) =
                *reinterpret_cast<const float4*>(my_scores + r * S_LD + half * (N / 2) + n);
        }
        const float m_old = sm[local_row];
        float m = m_old;
#pragma unroll
        for (int n = 0; n < N / 2; ++n) {
            s[n] = n < seen ? s[n] * scale_log2 : minus_inf;
            m = fmaxf(m, s[n]);
        }
        m = fmaxf(m, __shfl_xor_sync(~0u, m, 16));
        __syncwarp();  // all scores are in registers: the probabilities may take their place

        // Scores become fp16 here, but relative to the row's maximum: outliers make scores of several
        // thousand, where fp16 steps in whole units or overflows. Differences are at most 0, finest
        // where the weight is largest, and one that overflows to -inf means a weight of 0.
        __half* my_p = reinterpret_cast<__half*>(my_scores);  // same rows, twice the leading dimension
        float sum = 0.0f;
#pragma unroll
        for (int n = 0; n < N / 2; n += 8) {
            alignas(16) __half p[8];
#pragma unroll
            for (int i = 0; i < 8; ++i) {
                const __half below_top = __float2half_rn(s[n + i] - m);
                p[i] = __float2half_rn(exp2_approx(__half2float(below_top)));
                sum += __half2float(p[i]);  // what is multiplied with V is what is divided by
            }
            *reinterpret_cast<uint4*>(my_p + r * 2 * S_LD + half * (N / 2) + n) =
                *reinterpret_cast<const uint4*>(p);
        }
        sum += __shfl_xor_sync(~0u, sum, 16);
        if (half == 0) {
            const float shrink = exp2_approx(m_old - m);
            sm[local_row] = m;
            sl[local_row] = sl[local_row] * shrink + sum;
            sShrink[local_row] = shrink;
        }
        __syncwarp();

        // U = U * shrink + P@V. WMMA does not specify which thread holds what. With a leading
        // dimension of 0 every column of `factor` is the same 16 factors, so that its element e
        // belongs to the row of element e of any accumulator.
        FragSum factor;
        wmma::load_matrix_sync(factor, sShrink + warp * 16, 0, wmma::mem_col_major);
        FragA p[N / 16];
#pragma unroll
        for (int n = 0; n < N / 16; ++n) wmma::load_matrix_sync(p[n], my_p + n * 16, 2 * S_LD);
#pragma unroll
        for (int d = 0; d < D; d += 16) {
            FragSum u;
            wmma::fill_fragment(u, 0.0f);
            if (kv0 > 0) {  // before that U is uninitialised, and 0 * NaN is NaN
                wmma::load_matrix_sync(u, my_u + d, U_LD, wmma::mem_row_major);
#pragma unroll
                for (int e = 0; e < u.num_elements; ++e) u.x[e] *= factor.x[e];
            }
#pragma unroll
            for (int n = 0; n < N / 16; ++n) {
                FragBRows b;
                wmma::load_matrix_sync(b, sV + n * 16 * LD + d, LD);
                wmma::mma_sync(u, p[n], b, u);
            }
            wmma::store_matrix_sync(my_u + d, u, U_LD, wmma::mem_row_major);
        }
    }

    // A warp writes its own 16 rows, 8 channels a lane and step.
    __syncwarp();  // U is complete
    for (int i = lane; i < 16 * D / 8; i += 32) {
        const int o_row = i / (D / 8), c = i % (D / 8) * 8;
        if (q0 + warp * 16 + o_row >= S) continue;
        const float inv = 1.0f / sl[warp * 16 + o_row];
        alignas(16) __half h[8];
#pragma unroll
        for (int j = 0; j < 8; ++j) h[j] = __float2half_rn(my_u[o_row * U_LD + c + j] * inv);
        *reinterpret_cast<uint4*>(out + head + size_t(q0 + warp * 16 + o_row) * D + c) =
            *reinterpret_cast<const uint4*>(h);
    }
}
