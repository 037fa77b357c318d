/* evoengine
name: obsidian_parts_then_blend
precision: fp16
summary: WMMA attention over parts of the keys, blended by a second launch
tunables:
  PARTS: [2, 1, 3, 4]
let:
  CHUNK: round_up(ceil_div(S, PARTS), 32)
  BYTES: 2*(64 + 2*32)*(D+8) + 4*64*36 + 2*64*40 + 4*64*(D+4)
require:
  - BYTES <= MAX_SHARED_BYTES
scratch:
  part_out: {dtype: float32, shape: ["B*H", PARTS, S, D]}
  part_max: {dtype: float32, shape: ["B*H", PARTS, S]}
  part_sum: {dtype: float32, shape: ["B*H", PARTS, S]}
launches:
  - kernel: obsidianPart<D>
    grid: ["ceil_div(S, 64)", PARTS, "B*H"]
    block: [128]
    shared: BYTES
    args: [q, k, v, part_out, part_max, part_sum, S, CHUNK, scale, causal]
  - kernel: obsidianBlend<D>
    grid: ["ceil_div(B*H*S, 4)"]
    block: [128]
    args: [part_out, part_max, part_sum, out, S, B*H*S]
*/
#include <cuda_fp16.h>
#include <mma.h>

#define BM 64            /* queries of a block */
#define BN 32            /* keys of a tile */
#define LDS 36           /* leading dimension of the scores */
#define LDP 40           /* leading dimension of the weights */
#define FULL 0xffffffffu
#define NEG_INF __int_as_float(0xff800000)

namespace w = nvcuda::wmma;
typedef w::fragment<w::matrix_a, 16, 16, 16, __half, w::row_major> FragLeft;
typedef w::fragment<w::matrix_b, 16, 16, 16, __half, w::col_major> FragKey;
typedef w::fragment<w::matrix_b, 16, 16, 16, __half, w::row_major> FragVal;
typedef w::fragment<w::accumulator, 16, 16, 16, float> FragAcc;

// Copies `rows` rows of D halves into shared memory; rows at or after `limit` are zeroed.
template <int D>
__device__ void stageRows(__half* dst, const __half* src, int first, int rows, int limit)
{
    for (int i = threadIdx.x; i < rows * (D / 8); i += blockDim.x) {
        int r = i / (D / 8), c = (i % (D / 8)) * 8;
        uint4 x = make_uint4(0, 0, 0, 0);
        if (first + r < limit) x = *(const uint4*)(src + (size_t)(first + r) * D + c);
        *(uint4*)(dst + r * (D + 8) + c) = x;
    }
}

// One part (CHUNK keys) of one tile of queries of one head. Writes the unnormalised output together
// with the maximum and the sum to which it belongs.
template <int D>
__global__ void __launch_bounds__(128)
obsidianPart(const __half* __restrict__ q, const __half* __restrict__ k, const __half* __restrict__ v,
             float* __restrict__ part_out, float* __restrict__ part_max, float* __restrict__ part_sum,
             int S, int chunk, float scale, bool causal)
{
    const int LD = D + 8, LDO = D + 4;
    extern __shared__ __align__(128) unsigned char pool[];
    __half* Qs = (__half*)pool;
    __half* Ks = Qs + BM * LD;
    __half* Vs = Ks + BN * LD;
    float* Sc = (float*)(Vs + BN * LD);
    __half* Ps = (__half*)(Sc + BM * LDS);
    float* Os = (float*)(Ps + BM * LDP);

    const int wid = threadIdx.x >> 5, lid = threadIdx.x & 31;
    const int q0 = blockIdx.x * BM, part = blockIdx.y, head = blockIdx.z;
    const size_t base = (size_t)head * S * D;
    const int begin = part * chunk;
    int end = min(S, begin + chunk);
    if (causal) end = min(end, q0 + BM);

    // lanes 2i and 2i+1 look after row i of the warp's 16
    const int r = lid >> 1, side = lid & 1;
    const int lrow = wid * 16 + r, row = q0 + lrow;
    float* myO = Os + lrow * LDO + side * (D / 2);
    for (int c = 0; c < D / 2; ++c) myO[c] = 0.0f;
    float best = NEG_INF, mass = 0.0f;
    const float to2 = scale * 1.44269504f;

    stageRows<D>(Qs, q + base, q0, BM, S);

    for (int k0 = begin; k0 < end; k0 += BN) {
        stageRows<D>(Ks, k + base, k0, BN, S);
        stageRows<D>(Vs, v + base, k0, BN, S);
        __syncthreads();  /* tiles complete */

        for (int n = 0; n < BN; n += 16) {
            FragAcc acc;
            w::fill_fragment(acc, 0.0f);
            for (int c = 0; c < D; c += 16) {
                FragLeft a;
                FragKey b;
                w::load_matrix_sync(a, Qs + wid * 16 * LD + c, LD);
                w::load_matrix_sync(b, Ks + n * LD + c, LD);
                w::mma_sync(acc, a, b, acc);
            }
            w::store_matrix_sync(Sc + wid * 16 * LDS + n, acc, LDS, w::mem_row_major);
        }
        __syncwarp();

        float x[BN / 2];
        float high = best;
        for (int j = 0; j < BN / 2; ++j) {
            int key = k0 + side * (BN / 2) + j;
            bool visible = key < S && !(causal && key > row);
            x[j] = visible ? Sc[lrow * LDS + side * (BN / 2) + j] * to2 : NEG_INF;
            high = fmaxf(high, x[j]);
        }
        high = fmaxf(high, __shfl_xor_sync(FULL, high, 1));
        // A row may see nothing of this part yet: then any finite reference will do.
        const float ref = high == NEG_INF ? 0.0f : high;
        const float fade = exp2f(best - ref);
        float add = 0.0f;
        for (int j = 0; j < BN / 2; ++j) {
            __half p = __float2half(exp2f(x[j] - ref));
            Ps[lrow * LDP + side * (BN / 2) + j] = p;
            add += __half2float(p);
        }
        add += __shfl_xor_sync(FULL, add, 1);
        mass = mass * fade + add;
        best = high;
        for (int c = 0; c < D / 2; ++c) myO[c] *= fade;
        __syncwarp();

        for (int c = 0; c < D; c += 16) {
            FragAcc acc;
            w::load_matrix_sync(acc, Os + wid * 16 * LDO + c, LDO, w::mem_row_major);
            for (int n = 0; n < BN; n += 16) {
                FragLeft p;
                FragVal b;
                w::load_matrix_sync(p, Ps + wid * 16 * LDP + n, LDP);
                w::load_matrix_sync(b, Vs + n * LD + c, LD);
                w::mma_sync(acc, p, b, acc);
            }
            w::store_matrix_sync(Os + wid * 16 * LDO + c, acc, LDO, w::mem_row_major);
        }
        __syncthreads();  /* tiles free again */
    }

    if (row < S) {
        const size_t slot = ((size_t)head * PARTS + part) * S + row;
        for (int c = 0; c < D / 2; c += 4)
            *(float4*)(part_out + slot * D + side * (D / 2) + c) = *(float4*)(myO + c);
        if (side == 0) {
            part_max[slot] = best;
            part_sum[slot] = mass;
        }
    }
}

// A warp blends the parts of one query; a lane has D / 32 neighbouring columns.
template <int D>
__global__ void __launch_bounds__(128)
obsidianBlend(const float* __restrict__ part_out, const float* __restrict__ part_max,
              const float* __restrict__ part_sum, __half* __restrict__ out, int S, int rows)
{
    const int which = blockIdx.x * 4 + (threadIdx.x >> 5), lid = threadIdx.x & 31;
    if (which >= rows) return;
    const int head = which / S, row = which % S;

    float peak = NEG_INF;
    for (int p = 0; p < PARTS; ++p)
        peak = fmaxf(peak, part_max[((size_t)head * PARTS + p) * S + row]);

    float total = 0.0f, sum[D / 32] = {};
    for (int p = 0; p < PARTS; ++p) {
        const size_t from = ((size_t)head * PARTS + p) * S + row;
        const float weight = exp2f(part_max[from] - peak);
        total += weight * part_sum[from];
        for (int c = 0; c < D / 32; ++c)
            sum[c] += weight * part_out[from * D + lid * (D / 32) + c];
    }
    for (int c = 0; c < D / 32; c += 2)
        *(__half2*)(out + (size_t)which * D + lid * (D / 32) + c) =
            __floats2half2_rn(sum[c] / total, sum[c + 1] / total);
}
