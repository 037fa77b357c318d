/* evoengine
name: orchard_key_ranges_wmma
precision: fp16
summary: flash-decoding style - the keys are cut into PARTS ranges, WMMA per range, a second kernel joins the ranges
tunables:
  PARTS: [2, 3, 1]
let:
  RANGE: "round_up(ceil_div(S, PARTS), 32)"
  SMEM: 3*32*(D+8)*2 + 32*36*4 + 32*40*2 + 32*(D+4)*4
require: [SMEM <= MAX_SHARED_BYTES]
scratch:
  part_out: {dtype: float32, shape: [PARTS, "B*H", S, D]}
  part_max: {dtype: float32, shape: [PARTS, "B*H", S]}
  part_sum: {dtype: float32, shape: [PARTS, "B*H", S]}
launches:
  - kernel: range_attention<D>
    grid: ["ceil_div(S, 32)", PARTS, "B*H"]
    block: [128]
    shared: SMEM
    args: [q, k, v, part_out, part_max, part_sum, S, RANGE, scale, "1 if causal else 0"]
  - kernel: join_ranges<D>
    grid: ["ceil_div(B*H*S, 4)"]
    block: [128]
    args: [part_out, part_max, part_sum, out, "B*H*S"]
*/
#include <cuda_fp16.h>
#include <mma.h>
using namespace nvcuda::wmma;

#define BM 32                 /* queries per block */
#define BN 32                 /* keys per step */
#define NTHREADS 128
#define LDH (D + 8)           /* half tiles */
#define LDS (BN + 4)          /* float scores */
#define LDP (BN + 8)          /* half probabilities */
#define LDO (D + 4)           /* float output */

/* Copy `BM` rows of D halves into shared memory, 16 bytes a time; rows >= n_rows are zero. */
template <int D>
__device__ void stage_rows(__half* dst, const __half* src, int row0, int n_rows)
{
    for (int i = threadIdx.x; i < BM * D / 8; i += NTHREADS) {
        int r = i / (D / 8), c = i % (D / 8);
        uint4 val = make_uint4(0, 0, 0, 0);
        if (row0 + r < n_rows)
            val = *(const uint4*)(src + (size_t)(row0 + r) * D + c * 8);
        *(uint4*)(dst + r * LDH + c * 8) = val;
    }
}

template <int D>
__global__ void range_attention(const __half* Q, const __half* K, const __half* V,
                                float* part_out, float* part_max, float* part_sum,
                                int S, int range, float scale, int causal)
{
    extern __shared__ __align__(32) char raw[];
    __half* sQ = (__half*)raw;                       /* BM x LDH */
    __half* sK = sQ + BM * LDH;                      /* BN x LDH */
    __half* sV = sK + BN * LDH;                      /* BN x LDH */
    float*  sS = (float*)(sV + BN * LDH);            /* BM x LDS */
    __half* sP = (__half*)(sS + BM * LDS);           /* BM x LDP */
    float*  sO = (float*)(sP + BM * LDP);            /* BM x LDO */

    const int tid  = threadIdx.x;
    const int warp = tid >> 5;
    const int wr   = warp & 1;                       /* which 16 queries */
    const int wc   = warp >> 1;                      /* which 16 keys, or every second 16 columns */
    const int q0   = blockIdx.x * BM;
    const int bh   = blockIdx.z;
    const size_t base = (size_t)bh * S * D;

    /* four threads look after one row in the softmax */
    const int my_row = tid >> 2;
    const int my_sub = tid & 3;
    float run_max = -INFINITY;
    float run_sum = 0.f;

    int k_begin = blockIdx.y * range;
    int k_end   = min(S, k_begin + range);
    if (causal) k_end = min(k_end, q0 + BM);

    stage_rows<D>(sQ, Q + base, q0, S);
    for (int i = tid; i < BM * LDO; i += NTHREADS) sO[i] = 0.f;

    for (int k0 = k_begin; k0 < k_end; k0 += BN) {
        stage_rows<D>(sK, K + base, k0, S);
        stage_rows<D>(sV, V + base, k0, S);
        __syncthreads();

        {   /* S = Q K^T, one 16x16 tile per warp */
            fragment<accumulator, 16, 16, 16, float> acc;
            fill_fragment(acc, 0.f);
            for (int d = 0; d < D; d += 16) {
                fragment<matrix_a, 16, 16, 16, __half, row_major> fq;
                fragment<matrix_b, 16, 16, 16, __half, col_major> fk;
                load_matrix_sync(fq, sQ + wr * 16 * LDH + d, LDH);
                load_matrix_sync(fk, sK + wc * 16 * LDH + d, LDH);
                mma_sync(acc, fq, fk, acc);
            }
            store_matrix_sync(sS + wr * 16 * LDS + wc * 16, acc, LDS, mem_row_major);
        }
        __syncthreads();

        {   /* online softmax of my row: columns my_sub, my_sub + 4, ... */
            float s[BN / 4];
            float best = run_max;
            #pragma unroll
            for (int j = 0; j < BN / 4; ++j) {
                int key = k0 + my_sub + 4 * j;
                bool dead = key >= S || (causal && key > q0 + my_row);
                s[j] = dead ? -INFINITY : scale * sS[my_row * LDS + my_sub + 4 * j];
                best = fmaxf(best, s[j]);
            }
            best = fmaxf(best, __shfl_xor_sync(0xffffffff, best, 1));
            best = fmaxf(best, __shfl_xor_sync(0xffffffff, best, 2));
            float ref = best == -INFINITY ? 0.f : best;
            float total = 0.f;
            #pragma unroll
            for (int j = 0; j < BN / 4; ++j) {
                float p = expf(s[j] - ref);
                sP[my_row * LDP + my_sub + 4 * j] = __float2half(p);
                total += p;
            }
            total += __shfl_xor_sync(0xffffffff, total, 1);
            total += __shfl_xor_sync(0xffffffff, total, 2);
            float alpha = expf(run_max - ref);
            run_sum = run_sum * alpha + total;
            run_max = best;
            for (int c = my_sub; c < D; c += 4) sO[my_row * LDO + c] *= alpha;
        }
        __syncthreads();    /* sP and sO are complete */

        /* O += P V; each warp owns tiles (wr, wc), (wr, wc + 2), ... */
        for (int n = wc; n < D / 16; n += 2) {
            fragment<accumulator, 16, 16, 16, float> fo;
            load_matrix_sync(fo, sO + wr * 16 * LDO + n * 16, LDO, mem_row_major);
            for (int kk = 0; kk < BN; kk += 16) {
                fragment<matrix_a, 16, 16, 16, __half, row_major> fp;
                fragment<matrix_b, 16, 16, 16, __half, row_major> fv;
                load_matrix_sync(fp, sP + wr * 16 * LDP + kk, LDP);
                load_matrix_sync(fv, sV + kk * LDH + n * 16, LDH);
                mma_sync(fo, fp, fv, fo);
            }
            store_matrix_sync(sO + wr * 16 * LDO + n * 16, fo, LDO, mem_row_major);
        }
        __syncthreads();
    }

    /* Hand over. A range without keys for this row says so with a maximum of -inf. */
    const int row = q0 + my_row;
    if (row >= S) return;
    const size_t slot = ((size_t)blockIdx.y * gridDim.z + bh) * S + row;
    if (my_sub == 0) {
        part_max[slot] = run_max;
        part_sum[slot] = run_sum;
    }
    if (k_begin >= k_end) return;                    /* nothing was computed, write nothing */
    for (int c = my_sub * 4; c < D; c += 16)
        *(float4*)(part_out + slot * D + c) = *(const float4*)(sO + my_row * LDO + c);
}

/* One warp per query: weighs the ranges by exp(max) and divides by the total. */
template <int D>
__global__ void join_ranges(const float* part_out, const float* part_max, const float* part_sum,
                            __half* out, int n_rows)
{
    const int row  = blockIdx.x * 4 + (threadIdx.x >> 5);
    const int lane = threadIdx.x & 31;
    if (row >= n_rows) return;

    float top = -INFINITY;
    for (int p = 0; p < PARTS; ++p)
        top = fmaxf(top, part_max[(size_t)p * n_rows + row]);

    float acc[D / 32] = {};
    float denom = 0.f;
    for (int p = 0; p < PARTS; ++p) {
        size_t slot = (size_t)p * n_rows + row;
        float m = part_max[slot];
        if (m == -INFINITY) continue;
        float w = expf(m - top);
        denom += w * part_sum[slot];
        #pragma unroll
        for (int j = 0; j < D / 32; ++j)
            acc[j] += w * part_out[slot * D + j * 32 + lane];
    }
    #pragma unroll
    for (int j = 0; j < D / 32; ++j)
        out[(size_t)row * D + j * 32 + lane] = __float2half(acc[j] / denom);
}
