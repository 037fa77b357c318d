/* evoengine
name: attention_item_queue
precision: fp16
summary: blocks stay and take several items of 64 queries, those with the most keys first; one buffer of keys and one of values, each filled by cp.async while the other is multiplied
let:
  TILES: ceil_div(S, 64)
  BLOCKS: min(ceil_div(TILES * B * H, 2), SM_COUNT)
launches:
  - kernel: attention_kernel<D, causal>
    grid: [BLOCKS]
    block: [128]
    args: [q, k, v, out, S, B * H, TILES, scale * 1.4426950408889634]
*/
#include <cuda_fp16.h>

#define BLOCK_Q 64
#define BLOCK_K 32

__device__ __forceinline__ uint32_t smem_ptr(const void* p) { return static_cast<uint32_t>(__cvta_generic_to_shared(p)); }

#define CP_ASYNC_COMMIT() asm volatile("cp.async.commit_group;" ::: "memory")
#define CP_ASYNC_WAIT_ALL() asm volatile("cp.async.wait_group 0;" ::: "memory")

__device__ __forceinline__ void ldsm_x4(uint32_t (&r)[4], uint32_t at) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(at) : "memory");
}
__device__ __forceinline__ void ldsm_x4_t(uint32_t (&r)[4], uint32_t at) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(at) : "memory");
}
__device__ __forceinline__ void mma16816(float (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
__device__ __forceinline__ uint32_t pack_half2(float x, float y) {
    half2 h = __floats2half2_rn(x, y);
    return reinterpret_cast<uint32_t&>(h);
}

// Element offset of 8 columns `chunk` of row `row`; rows of one ldmatrix lie in different banks.
template <int D> __device__ __forceinline__ int swizzle(int row, int chunk) { return row * D + ((chunk ^ (row & 7)) << 3); }

// Starts the copy of keys [begin, begin + BLOCK_K) of one head; zeros past the end.
template <int D> __device__ __forceinline__ void copy_tile(half* tile, const half* head, int begin, int S) {
    for (int i = threadIdx.x; i < BLOCK_K * D / 8; i += 128) {
        const int row = i / (D / 8), chunk = i % (D / 8);
        const bool ok = begin + row < S;
        const half* src = head + (ok ? (size_t)(begin + row) * D + chunk * 8 : 0);
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(smem_ptr(tile + swizzle<D>(row, chunk))), "l"(src), "r"(ok ? 16 : 0) : "memory");
    }
}

template <int D, bool IS_CAUSAL>
__global__ void __launch_bounds__(128)
attention_kernel(const half* __restrict__ Q, const half* __restrict__ K, const half* __restrict__ V, half* __restrict__ O, int S,
                 int heads, int q_tiles, float scale_log2) {
    __shared__ __align__(128) half sK[BLOCK_K * D];
    __shared__ __align__(128) half sV[BLOCK_K * D];
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    const int items = heads * q_tiles;
    const size_t head_size = (size_t)S * D;

    copy_tile<D>(sK, K + blockIdx.x % heads * head_size, 0, S);
    CP_ASYNC_COMMIT();

    for (int item = blockIdx.x; item < items; item += gridDim.x) {
        const int head = item % heads;
        const int q0 = (q_tiles - 1 - item / heads) * BLOCK_Q;   // the last queries see the most keys
        const int row0 = q0 + warp * 16;                       // first of this warp
        const half* Vh = V + head * head_size;
        const int n_tiles = ((IS_CAUSAL ? min(S, q0 + BLOCK_Q) : S) + BLOCK_K - 1) / BLOCK_K;

        uint32_t qf[D / 16][4];
        for (int kk = 0; kk < D / 16; ++kk)
            for (int i = 0; i < 4; ++i) {
                const int r = row0 + lane / 4 + (i & 1) * 8, c = kk * 16 + (i >> 1) * 8 + (lane & 3) * 2;
                qf[kk][i] = r < S ? *reinterpret_cast<const uint32_t*>(Q + head * head_size + (size_t)r * D + c) : 0u;
            }

        float acc[D / 8][4] = {};
        float m_i[2] = {-INFINITY, -INFINITY}, l_i[2] = {0.0f, 0.0f};

        for (int t = 0; t < n_tiles; ++t) {
            CP_ASYNC_WAIT_ALL();
            __syncthreads();   // the keys are here, and all have left the values before
            copy_tile<D>(sV, Vh, t * BLOCK_K, S);
            CP_ASYNC_COMMIT();

            float s[4][4] = {};
            for (int kk = 0; kk < D / 16; ++kk)
                for (int n = 0; n < 4; n += 2) {
                    uint32_t kf[4];
                    ldsm_x4(kf, smem_ptr(sK + swizzle<D>(n * 8 + (lane >> 4) * 8 + (lane & 7), kk * 2 + ((lane >> 3) & 1))));
                    mma16816(s[n], qf[kk], kf[0], kf[1]);
                    mma16816(s[n + 1], qf[kk], kf[2], kf[3]);
                }

            // Only tiles on the diagonal and the last one have keys to hide.
            const bool partial = (t + 1) * BLOCK_K > S || (IS_CAUSAL && (t + 1) * BLOCK_K > row0);
            if (partial)
                for (int n = 0; n < 4; ++n)
                    for (int e = 0; e < 4; ++e) {
                        const int col = t * BLOCK_K + n * 8 + (lane & 3) * 2 + (e & 1), r = row0 + lane / 4 + (e >> 1) * 8;
                        if (col >= S || (IS_CAUSAL && col > r)) s[n][e] = -INFINITY;
                    }

            for (int h = 0; h < 2; ++h) {
                float m_new = m_i[h];
                for (int n = 0; n < 4; ++n) m_new = fmaxf(m_new, fmaxf(s[n][2 * h], s[n][2 * h + 1]));
                m_new = fmaxf(m_new, __shfl_xor_sync(0xffffffff, m_new, 1));
                m_new = fmaxf(m_new, __shfl_xor_sync(0xffffffff, m_new, 2));
                const float alpha = exp2f((m_i[h] - m_new) * scale_log2);
                m_i[h] = m_new;
                float row_sum = 0.0f;
                for (int n = 0; n < 4; ++n)
                    for (int e = 2 * h; e < 2 * h + 2; ++e) {
                        s[n][e] = exp2f(fmaf(s[n][e], scale_log2, -m_new * scale_log2));
                        row_sum += s[n][e];
                    }
                l_i[h] = l_i[h] * alpha + row_sum;
                for (int c = 0; c < D / 8; ++c) {
                    acc[c][2 * h] *= alpha;
                    acc[c][2 * h + 1] *= alpha;
                }
            }

            CP_ASYNC_WAIT_ALL();
            __syncthreads();   // the values are here, and all have left the keys
            const int next = item + gridDim.x;
            if (t + 1 < n_tiles) copy_tile<D>(sK, K + head * head_size, (t + 1) * BLOCK_K, S);
            else if (next < items) copy_tile<D>(sK, K + next % heads * head_size, 0, S);
            CP_ASYNC_COMMIT();

            for (int j = 0; j < 2; ++j) {
                const uint32_t pf[4] = {pack_half2(s[2 * j][0], s[2 * j][1]), pack_half2(s[2 * j][2], s[2 * j][3]),
                                        pack_half2(s[2 * j + 1][0], s[2 * j + 1][1]), pack_half2(s[2 * j + 1][2], s[2 * j + 1][3])};
                for (int c = 0; c < D / 16; ++c) {
                    uint32_t vf[4];
                    ldsm_x4_t(vf, smem_ptr(sV + swizzle<D>(j * 16 + (lane & 15), c * 2 + (lane >> 4))));
                    mma16816(acc[2 * c], pf, vf[0], vf[1]);
                    mma16816(acc[2 * c + 1], pf, vf[2], vf[3]);
                }
            }
        }

        for (int h = 0; h < 2; ++h) {
            l_i[h] += __shfl_xor_sync(0xffffffff, l_i[h], 1);
            l_i[h] += __shfl_xor_sync(0xffffffff, l_i[h], 2);
            const int r = row0 + lane / 4 + h * 8;
            if (r >= S) continue;
            const float inv = 1.0f / l_i[h];
            for (int c = 0; c < D / 8; ++c)
                *reinterpret_cast<uint32_t*>(O + head * head_size + (size_t)r * D + c * 8 + (lane & 3) * 2) =
                    pack_half2(acc[c][2 * h] * inv, acc[c][2 * h + 1] * inv);
        }
    }
}
