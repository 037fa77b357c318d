/* evoengine
name: quarry_wmma_one_pit
precision: fp16
summary: wmma; one buffer holds the keys of a tile and then its values; sums of the output in shared memory
tunables:
  LANES: [4, 8]
let:
  NTHR: 32 * LANES
  PIT: 32 * (D + 8) * 2
  SMEM: 2 * PIT + 32 * 36 * 4 + 32 * 40 * 2 + 32 * (D + 4) * 4 + 3 * 32 * 4
launches:
  - kernel: "quarry_sdpa<D>"
    grid: ["ceil_div(S, 32)", H, B]
    block: [NTHR]
    shared: SMEM
    args: [q, k, v, out, H, S, scale, causal]
*/
#include <cuda_fp16.h>
#include <mma.h>

using namespace nvcuda;

#define BR 32              /* query rows per block                 */
#define BC 32              /* keys per step                        */
#define NT (32 * LANES)    /* LANES threads share one row          */
#define NW (NT / 32)
#define LDS 36             /* leading dimension of scores, floats  */
#define LDP 40             /* leading dimension of weights, halves */
#define NEG_INF __int_as_float(0xff800000)

/* Bring 32 rows [row0, row0+32) of a [S, HD] matrix to shared memory, zeros past the end. */
template <int HD>
__device__ void bring(half* dst, const half* src, int row0, int S)
{
    const int VEC = HD / 8;
    for (int i = threadIdx.x; i < 32 * VEC; i += NT) {
        int r = i / VEC, c = (i % VEC) * 8;
        uint4 x = make_uint4(0, 0, 0, 0);
        if (row0 + r < S) x = *(const uint4*)(src + (size_t)(row0 + r) * HD + c);
        *(uint4*)(dst + r * (HD + 8) + c) = x;
    }
}

template <int HD>
__global__ void quarry_sdpa(const half* q, const half* k, const half* v, half* out,
                            int H, int S, float scale, bool causal)
{
    const int LD = HD + 8, LDO = HD + 4;
    extern __shared__ __align__(128) unsigned char smem[];
    half*  Qs    = (half*)smem;                 /* [BR][LD]   */
    half*  pit   = Qs + BR * LD;                /* [BC][LD]   keys, then values */
    float* Ss    = (float*)(pit + BC * LD);     /* [BR][LDS]  */
    half*  Ps    = (half*)(Ss + BR * LDS);      /* [BR][LDP]  */
    float* Os    = (float*)(Ps + BR * LDP);     /* [BR][LDO]  */
    float* m_run = Os + BR * LDO;               /* [BR]       */
    float* l_run = m_run + BR;                  /* [BR]       */
    float* alpha = l_run + BR;                  /* [BR]       */

    const int tid = threadIdx.x, warp = tid / 32;
    const int r = tid / LANES, part = tid % LANES;  /* my row, my share of it */
    const int q0 = blockIdx.x * BR;
    const size_t plane = (size_t)blockIdx.z * H + blockIdx.y;
    const half* q_head = q + plane * S * HD;
    const half* k_head = k + plane * S * HD;
    const half* v_head = v + plane * S * HD;
    half* o_head = out + plane * S * HD;

    bring<HD>(Qs, q_head, q0, S);
    for (int i = tid; i < BR * LDO; i += NT) Os[i] = 0.0f;
    if (tid < BR) {
        m_run[tid] = NEG_INF;
        l_run[tid] = 0.0f;
    }

    int stop = S;
    if (causal && q0 + BR < S) stop = q0 + BR;

    for (int k0 = 0; k0 < stop; k0 += BC) {
        bring<HD>(pit, k_head, k0, S);
        __syncthreads();

        /* S = Q K^T : four 16x16 tiles */
        for (int t = warp; t < 4; t += NW) {
            const int tr = t / 2, tc = t % 2;
            wmma::fragment<wmma::accumulator, 16, 16, 16, float> sc;
            wmma::fill_fragment(sc, 0.0f);
            for (int d = 0; d < HD; d += 16) {
                wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> a;
                wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::col_major> b;
                wmma::load_matrix_sync(a, Qs + tr * 16 * LD + d, LD);
                wmma::load_matrix_sync(b, pit + tc * 16 * LD + d, LD);
                wmma::mma_sync(sc, a, b, sc);
            }
            wmma::store_matrix_sync(Ss + tr * 16 * LDS + tc * 16, sc, LDS, wmma::mem_row_major);
        }
        __syncthreads();   /* scores complete, keys no longer needed */

        bring<HD>(pit, v_head, k0, S);

        /* softmax of the tile; the LANES threads of a row sit side by side in one warp */
        float x[BC / LANES];
        float best = NEG_INF;
        for (int j = 0; j < BC / LANES; ++j) {
            const int c = part + j * LANES, key = k0 + c;
            x[j] = Ss[r * LDS + c] * scale;
            if (key >= S || (causal && key > q0 + r)) x[j] = NEG_INF;
            best = fmaxf(best, x[j]);
        }
        for (int o = LANES / 2; o > 0; o >>= 1) best = fmaxf(best, __shfl_xor_sync(0xffffffff, best, o));
        const float m_old = m_run[r];
        const float m_new = fmaxf(m_old, best);
        float sum = 0.0f;
        for (int j = 0; j < BC / LANES; ++j) {
            const float p = expf(x[j] - m_new);
            Ps[r * LDP + part + j * LANES] = __float2half(p);
            sum += p;
        }
        for (int o = LANES / 2; o > 0; o >>= 1) sum += __shfl_xor_sync(0xffffffff, sum, o);
        __syncwarp();
        if (part == 0) {
            alpha[r] = expf(m_old - m_new);
            l_run[r] = l_run[r] * alpha[r] + sum;
            m_run[r] = m_new;
        }
        __syncwarp();
        for (int c = part; c < HD; c += LANES) Os[r * LDO + c] *= alpha[r];
        __syncthreads();   /* values, weights and shrunken sums are there */

        /* O += P V : 2 x HD/16 tiles, accumulated where they lie */
        for (int t = warp; t < 2 * (HD / 16); t += NW) {
            const int tr = t % 2, tc = t / 2;
            wmma::fragment<wmma::accumulator, 16, 16, 16, float> oc;
            wmma::load_matrix_sync(oc, Os + tr * 16 * LDO + tc * 16, LDO, wmma::mem_row_major);
            for (int c = 0; c < BC; c += 16) {
                wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> a;
                wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::row_major> b;
                wmma::load_matrix_sync(a, Ps + tr * 16 * LDP + c, LDP);
                wmma::load_matrix_sync(b, pit + c * LD + tc * 16, LD);
                wmma::mma_sync(oc, a, b, oc);
            }
            wmma::store_matrix_sync(Os + tr * 16 * LDO + tc * 16, oc, LDO, wmma::mem_row_major);
        }
        __syncthreads();   /* before the pit is filled again */
    }

    if (q0 + r < S) {
        const float norm = 1.0f / l_run[r];
        for (int c = part * 2; c < HD; c += LANES * 2)
            *(half2*)(o_head + (size_t)(q0 + r) * HD + c) =
                __floats2half2_rn(Os[r * LDO + c] * norm, Os[r * LDO + c + 1] * norm);
    }
}
