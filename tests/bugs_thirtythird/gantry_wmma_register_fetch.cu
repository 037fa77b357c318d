/* evoengine
name: gantry_wmma_register_fetch
precision: fp16
summary: WMMA for both products, output tile in shared memory, next K/V tile fetched into registers meanwhile
tunables:
  PAD: [8, 16]          # halves added to a row of Q, K, V
let:
  HALVES: 96 * (D + PAD) + 32 * 40
  FLOATS: 32 * 36 + 32 * (D + 4)
  BYTES: 2 * HALVES + 4 * FLOATS
require: [BYTES <= MAX_SHARED_BYTES]
launches:
  - kernel: gantry_attention<D, causal>
    grid: ["ceil_div(S, 32)", H, B]
    block: [128]
    shared: BYTES
    args: [q, k, v, out, H, S, scale]
*/
#include <cuda_fp16.h>
#include <mma.h>

#define BR 32               /* query rows of a block   */
#define BC 32               /* keys of a tile          */
#define NT 128              /* threads: four warps     */
#define LDP (BC + 8)        /* weights, halves         */
#define LDS (BC + 4)        /* scores, floats          */
#define NEG_INF (-__int_as_float(0x7f800000))
#define LOG2E 1.4426950408889634f

namespace wm = nvcuda::wmma;
typedef wm::fragment<wm::matrix_a, 16, 16, 16, __half, wm::row_major> FragLeft;
typedef wm::fragment<wm::matrix_b, 16, 16, 16, __half, wm::col_major> FragKeys;
typedef wm::fragment<wm::matrix_b, 16, 16, 16, __half, wm::row_major> FragValues;
typedef wm::fragment<wm::accumulator, 16, 16, 16, float> FragAcc;

/*
 * One block: 32 query rows of one head.
 *
 *   scores   32 x 32   warp w has the 16 x 16 corner (w / 2, w % 2)
 *   softmax            four threads a row, eight columns each
 *   output   32 x HD   warp w has rows 16 * (w / 2) and half w % 2 of the columns
 *
 * The output tile lies in shared memory between tiles, because a WMMA accumulator
 * does not tell which row an element belongs to and the rows must be rescaled.
 */
template <int HD, bool CAUSAL>
__global__ void __launch_bounds__(NT)
gantry_attention(const __half *__restrict__ q, const __half *__restrict__ k,
                 const __half *__restrict__ v, __half *__restrict__ out,
                 int H, int S, float scale)
{
    const int LDH = HD + PAD;              /* leading dimension of Q, K, V */
    const int LDO = HD + 4;                /* and of the output, in floats */
    const int VEC = HD / 8;                /* 16-byte vectors of a row     */
    const int PER_THREAD = BC * VEC / NT;  /* vectors of a tile a thread   */

    extern __shared__ __align__(128) unsigned char smem[];
    __half *sQ = reinterpret_cast<__half *>(smem);
    __half *sK = sQ + BR * LDH;
    __half *sV = sK + BC * LDH;
    __half *sP = sV + BC * LDH;
    float *sS = reinterpret_cast<float *>(sP + BR * LDP);
    float *sO = sS + BR * LDS;

    const int tid = threadIdx.x, warp = tid / 32;
    const int wr = warp / 2 * 16, wc = warp % 2;
    const int row0 = blockIdx.x * BR;
    const size_t head = (size_t(blockIdx.z) * H + blockIdx.y) * S * HD;
    const int keys = CAUSAL ? min(S, row0 + BR) : S;
    const int tiles = (keys + BC - 1) / BC;

    /* Q, zeros beyond the last row; the output starts at zero */
    for (int i = tid; i < BR * VEC; i += NT) {
        const int r = i / VEC, c = i % VEC * 8;
        uint4 x = make_uint4(0, 0, 0, 0);
        if (row0 + r < S)
            x = *reinterpret_cast<const uint4 *>(q + head + size_t(row0 + r) * HD + c);
        *reinterpret_cast<uint4 *>(sQ + r * LDH + c) = x;
    }
    for (int i = tid; i < BR * LDO; i += NT)
        sO[i] = 0.0f;

    uint4 nextK[PER_THREAD], nextV[PER_THREAD];
    auto fetch = [&](int first) {
#pragma unroll
        for (int j = 0; j < PER_THREAD; ++j) {
            const int i = tid + j * NT, key = first + i / VEC, c = i % VEC * 8;
            nextK[j] = nextV[j] = make_uint4(0, 0, 0, 0);
            if (key < S) {
                nextK[j] = __ldg(reinterpret_cast<const uint4 *>(k + head + size_t(key) * HD + c));
                nextV[j] = __ldg(reinterpret_cast<const uint4 *>(v + head + size_t(key) * HD + c));
            }
        }
    };
    fetch(0);

    const int srow = tid / 4, part = tid % 4;      /* this thread's share of the softmax */
    float rowMax = NEG_INF, rowSum = 0.0f;
    const float toLog2 = scale * LOG2E;

    for (int t = 0; t < tiles; ++t) {
        /* --- registers to shared memory, and the next tile is on its way --- */
#pragma unroll
        for (int j = 0; j < PER_THREAD; ++j) {
            const int i = tid + j * NT, r = i / VEC, c = i % VEC * 8;
            *reinterpret_cast<uint4 *>(sK + r * LDH + c) = nextK[j];
            *reinterpret_cast<uint4 *>(sV + r * LDH + c) = nextV[j];
        }
        __syncthreads();    /* tile stored */
        if (t + 1 < tiles)
            fetch((t + 1) * BC);

        /* --- scores --- */
        {
            FragAcc acc;
            wm::fill_fragment(acc, 0.0f);
#pragma unroll
            for (int d = 0; d < HD; d += 16) {
                FragLeft a;
                FragKeys b;
                wm::load_matrix_sync(a, sQ + wr * LDH + d, LDH);
                wm::load_matrix_sync(b, sK + wc * 16 * LDH + d, LDH);
                wm::mma_sync(acc, a, b, acc);
            }
            wm::store_matrix_sync(sS + wr * LDS + wc * 16, acc, LDS, wm::mem_row_major);
        }
        __syncthreads();    /* scores stored */

        /* --- online softmax: weights to sP, rows of sO shrunk --- */
        {
            float s[BC / 4], top = rowMax;
#pragma unroll
            for (int j = 0; j < BC / 4; ++j) {
                const int key = t * BC + part + 4 * j;
                s[j] = sS[srow * LDS + part + 4 * j];
                if (key >= S || (CAUSAL && key > row0 + srow))
                    s[j] = NEG_INF;
                top = fmaxf(top, s[j]);
            }
            top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, 1));
            top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, 2));

            float sum = 0.0f;
#pragma unroll
            for (int j = 0; j < BC / 4; ++j) {
                const float w = exp2f((s[j] - top) * toLog2);
                sP[srow * LDP + part + 4 * j] = __float2half(w);
                sum += w;
            }
            sum += __shfl_xor_sync(0xffffffffu, sum, 1);
            sum += __shfl_xor_sync(0xffffffffu, sum, 2);

            const float shrink = exp2f((rowMax - top) * toLog2);
            rowSum = rowSum * shrink + sum;
            rowMax = top;
#pragma unroll
            for (int c = part * 4; c < HD; c += 16) {
                float4 *o = reinterpret_cast<float4 *>(sO + srow * LDO + c);
                float4 x = *o;
                x.x *= shrink; x.y *= shrink; x.z *= shrink; x.w *= shrink;
                *o = x;
            }
        }
        __syncthreads();    /* weights stored */

        /* --- output += weights * values --- */
#pragma unroll
        for (int c = 0; c < HD / 2; c += 16) {
            float *corner = sO + wr * LDO + wc * (HD / 2) + c;
            FragAcc acc;
            wm::load_matrix_sync(acc, corner, LDO, wm::mem_row_major);
#pragma unroll
            for (int n = 0; n < BC; n += 16) {
                FragLeft a;
                FragValues b;
                wm::load_matrix_sync(a, sP + wr * LDP + n, LDP);
                wm::load_matrix_sync(b, sV + n * LDH + wc * (HD / 2) + c, LDH);
                wm::mma_sync(acc, a, b, acc);
            }
            wm::store_matrix_sync(corner, acc, LDO, wm::mem_row_major);
        }
        __syncthreads();    /* output tile whole, K and V free */
    }

    /* --- normalise; eight columns at a time --- */
    if (row0 + srow < S) {
        const float inverse = 1.0f / rowSum;
        for (int c = part * 8; c < HD; c += 32) {
            const float *o = sO + srow * LDO + c;
            __align__(16) __half2 h[4];
#pragma unroll
            for (int j = 0; j < 4; ++j)
                h[j] = __floats2half2_rn(o[2 * j] * inverse, o[2 * j + 1] * inverse);
            *reinterpret_cast<uint4 *>(out + head + size_t(row0 + srow) * HD + c) =
                *reinterpret_cast<const uint4 *>(h);
        }
    }
}
