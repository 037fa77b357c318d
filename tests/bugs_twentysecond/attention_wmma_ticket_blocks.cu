/* evoengine
name: attention_wmma_ticket_blocks
precision: fp16
summary: resident blocks draw tiles of 32 query rows by ticket; WMMA products, scores and output in shared memory
tunables:
  NK: [64, 32]        # keys of a tile
  PER_SM: [2, 1, 3]   # blocks that one multiprocessor holds
let:
  jobs: B*H*ceil_div(S, 32)
  smem: 64*(D + 8) + 4*NK*(D + 8) + 128*(NK + 4) + 64*(NK + 8) + 128*(D + 4)
require: ["smem <= MAX_SHARED_BYTES"]
scratch:
  ticket: {dtype: int32, shape: [1], init: 0}
launches:
  - kernel: attn<D, causal>
    grid: ["min(jobs, SM_COUNT*PER_SM)"]
    block: [128]
    shared: smem
    args: [q, k, v, out, ticket, S, jobs, scale]
*/
#include <cuda_fp16.h>
#include <mma.h>

using namespace nvcuda::wmma;

constexpr int NQ = 32, NT = 128;
constexpr int LDS = NK + 4, LDP = NK + 8;
using FragA = fragment<matrix_a, 16, 16, 16, __half, row_major>;
using FragC = fragment<accumulator, 16, 16, 16, float>;

// Starts copying n rows of a head from row r0 on; rows from S on become zeros.
template <int D> __device__ __forceinline__ void copy_rows(__half* dst, const __half* src, int r0, int n, int S) {
    for (int i = threadIdx.x; i < n * (D / 8); i += NT) {
        const int r = i / (D / 8), c = i % (D / 8) * 8;
        const bool in = r0 + r < S;
        const unsigned to = __cvta_generic_to_shared(dst + r * (D + 8) + c);
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(in ? src + size_t(r0 + r) * D + c : src), "r"(in ? 16 : 0) : "memory");
    }
}
__device__ __forceinline__ void commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int N> __device__ __forceinline__ void wait_all_but() { asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory"); }

template <int D, bool CAUSAL>
__global__ void __launch_bounds__(NT)
attn(const __half* __restrict__ q, const __half* __restrict__ k, const __half* __restrict__ v, __half* __restrict__ out,
     int* __restrict__ ticket, int S, int jobs, float scale) {
    constexpr int LDH = D + 8, LDO = D + 4;
    extern __shared__ __align__(128) unsigned char buf[];
    __half* sq = reinterpret_cast<__half*>(buf);       // [NQ][LDH]
    __half* sk = sq + NQ * LDH;                        // [NK][LDH]
    __half* sv = sk + NK * LDH;                        // [NK][LDH]
    float* ss = reinterpret_cast<float*>(sv + NK * LDH);   // [NQ][LDS]: scores
    float* so = ss + NQ * LDS;                         // [NQ][LDO]: output before the division
    __half* sp = reinterpret_cast<__half*>(so + NQ * LDO);  // [NQ][LDP]: weights
    __shared__ int drawn;

    const int tid = threadIdx.x, w = tid / 32;
    const int wr = w % 2 * 16, wc = w / 2 * 16;        // a warp has 16 rows and every other 16 columns
    const int r = tid / 4, part = tid % 4;             // in the softmax four threads share a row
    const int tiles = (S + NQ - 1) / NQ;
    const float f = scale * 1.4426950408889634f;

    while (true) {
        if (tid == 0) drawn = atomicAdd(ticket, 1);
        __syncthreads();
        const int job = drawn;
        if (job >= jobs) break;
        // Under the mask the last rows have the most keys: they are drawn first.
        const int heads = jobs / tiles, head = job % heads, qt = tiles - 1 - job / heads;
        const int q0 = qt * NQ;
        const __half *qh = q + size_t(head) * S * D, *kh = k + size_t(head) * S * D, *vh = v + size_t(head) * S * D;
        const int n_keys = CAUSAL ? min(S, q0 + NQ) : S;
        float m = -INFINITY, l = 0.0f;

        copy_rows<D>(sq, qh, q0, NQ, S);
        copy_rows<D>(sk, kh, 0, NK, S);
        commit();
        for (int i = tid; i < NQ * LDO; i += NT) so[i] = 0.0f;
        for (int k0 = 0; k0 < n_keys; k0 += NK) {
            copy_rows<D>(sv, vh, k0, NK, S);
            commit();
            wait_all_but<1>();                         // the keys are here, the values may still be on their way
            __syncthreads();
            for (int c = wc; c < NK; c += 32) {
                FragC acc;
                fill_fragment(acc, 0.0f);
                for (int d = 0; d < D; d += 16) {
                    FragA a;
                    fragment<matrix_b, 16, 16, 16, __half, col_major> b;   // K transposed: rows of K are its columns
                    load_matrix_sync(a, sq + wr * LDH + d, LDH);
                    load_matrix_sync(b, sk + c * LDH + d, LDH);
                    mma_sync(acc, a, b, acc);
                }
                store_matrix_sync(ss + wr * LDS + c, acc, LDS, mem_row_major);
            }
            __syncthreads();
            if (k0 + NK < n_keys) copy_rows<D>(sk, kh, k0 + NK, NK, S);
            commit();

            const int seen = min(CAUSAL ? min(S, q0 + r + 1) : S, k0 + NK) - k0;   // keys of the tile that the row sees
            float top = m;
            for (int c = part; c < seen; c += 4) top = fmaxf(top, ss[r * LDS + c]);
            top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, 1));
            top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, 2));
            const float fade = exp2f((m - top) * f);
            m = top;
            float sum = 0.0f;
            for (int c = part; c < NK; c += 4) {
                const float p = c < seen ? exp2f((ss[r * LDS + c] - top) * f) : 0.0f;
                sum += p;
                sp[r * LDP + c] = __float2half_rn(p);
            }
            l = l * fade + sum;                        // the share of this thread; the four meet at the end
            for (int c = part; c < D; c += 4) so[r * LDO + c] *= fade;

            wait_all_but<1>();                         // the values are here
            __syncthreads();
            for (int c = wc; c < D; c += 32) {
                FragC acc;
                load_matrix_sync(acc, so + wr * LDO + c, LDO, mem_row_major);
                for (int j = 0; j < NK; j += 16) {
                    FragA a;
                    fragment<matrix_b, 16, 16, 16, __half, row_major> b;
                    load_matrix_sync(a, sp + wr * LDP + j, LDP);
                    load_matrix_sync(b, sv + j * LDH + c, LDH);
                    mma_sync(acc, a, b, acc);
                }
                store_matrix_sync(so + wr * LDO + c, acc, LDO, mem_row_major);
            }
            __syncthreads();                           // the values are read and the output is written
        }
        l += __shfl_xor_sync(0xffffffffu, l, 1);
        l += __shfl_xor_sync(0xffffffffu, l, 2);
        if (q0 + r < S)
            for (int c = part * 8; c < D; c += 32) {
                __half2 eight[4];
                for (int j = 0; j < 4; ++j) {
                    const float2 o = *reinterpret_cast<const float2*>(so + r * LDO + c + 2 * j);
                    eight[j] = __floats2half2_rn(o.x / l, o.y / l);
                }
                *reinterpret_cast<uint4*>(out + (size_t(head) * S + q0 + r) * D + c) = *reinterpret_cast<const uint4*>(eight);
            }
        wait_all_but<0>();
        __syncthreads();                               // before the next tile takes over the memory and `drawn`
    }
}
