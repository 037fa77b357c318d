/* evoengine
name: attention_ldmatrix_prefetch
precision: fp16
summary: four warps of 16 queries on mma.sync; swizzled tiles of 32 keys are read by ldmatrix, from the last tile to the first, and the next one waits in registers
launches:
  - kernel: flash<D, causal>
    grid: ["ceil_div(S, 64)", "B * H"]
    block: [128]
    shared: 256 * D
    args: [q, k, v, out, S, scale]
*/
#include <cuda_fp16.h>

constexpr int THREADS = 128, BLOCK_M = 64, BLOCK_N = 32;

__device__ __forceinline__ void mma(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

__device__ __forceinline__ void ldmatrix_x4(unsigned (&r)[4], const __half* from) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(static_cast<unsigned>(__cvta_generic_to_shared(from))));
}

__device__ __forceinline__ void ldmatrix_x4_trans(unsigned (&r)[4], const __half* from) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(static_cast<unsigned>(__cvta_generic_to_shared(from))));
}

__device__ __forceinline__ unsigned pack(float x, float y) {
    const __half2 both = __floats2half2_rn(x, y);
    return *reinterpret_cast<const unsigned*>(&both);
}

// Where chunk `c` of eight halves of row `r` lies in a tile: chunks of a row are exchanged by the low bits of its number.
template <int D> __device__ __forceinline__ int place(int r, int c) { return r * D + ((c ^ (r & 7)) << 3); }

template <int D, bool CAUSAL>
__global__ void __launch_bounds__(THREADS)
flash(const __half* __restrict__ q, const __half* __restrict__ k, const __half* __restrict__ v, __half* __restrict__ out, int S,
      float scale) {
    constexpr int CHUNKS = D / 8, COPIES = BLOCK_N * CHUNKS / THREADS;
    extern __shared__ __align__(16) __half smem[];
    __half *sq = smem, *sk = sq + BLOCK_M * D, *sv = sk + BLOCK_N * D;
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int m0 = blockIdx.x * BLOCK_M;
    const size_t base = size_t(blockIdx.y) * S * D;
    q += base, k += base, v += base, out += base;

    uint4 next_k[COPIES], next_v[COPIES];
    auto load_next = [&](int n0) {
#pragma unroll
        for (int i = 0; i < COPIES; ++i) {
            const int at = threadIdx.x + i * THREADS, r = at / CHUNKS, c = at % CHUNKS;
            const bool inside = n0 + r < S;
            next_k[i] = inside ? reinterpret_cast<const uint4*>(k + size_t(n0 + r) * D)[c] : make_uint4(0, 0, 0, 0);
            next_v[i] = inside ? reinterpret_cast<const uint4*>(v + size_t(n0 + r) * D)[c] : make_uint4(0, 0, 0, 0);
        }
    };

    const int key_end = CAUSAL ? min(S, m0 + BLOCK_M) : S;
    int n0 = (key_end - 1) / BLOCK_N * BLOCK_N;
    load_next(n0);
    for (int i = threadIdx.x; i < BLOCK_M * CHUNKS; i += THREADS) {
        const int r = i / CHUNKS, c = i % CHUNKS;
        *reinterpret_cast<uint4*>(sq + place<D>(r, c)) =
            m0 + r < S ? reinterpret_cast<const uint4*>(q + size_t(m0 + r) * D)[c] : make_uint4(0, 0, 0, 0);
    }
    __syncthreads();
    unsigned qf[D / 16][4];
#pragma unroll
    for (int d = 0; d < D / 16; ++d) ldmatrix_x4(qf[d], sq + place<D>(warp * 16 + lane % 16, d * 2 + lane / 16));

    float acc[CHUNKS][4] = {};
    float m_i[2] = {-INFINITY, -INFINITY}, l_i[2] = {0.0f, 0.0f};
    const float scale_log2 = scale * 1.4426950408889634f;
    for (; n0 >= 0; n0 -= BLOCK_N) {
        __syncthreads();   // the tiles before have been read
#pragma unroll
        for (int i = 0; i < COPIES; ++i) {
            const int at = threadIdx.x + i * THREADS;
            *reinterpret_cast<uint4*>(sk + place<D>(at / CHUNKS, at % CHUNKS)) = next_k[i];
            *reinterpret_cast<uint4*>(sv + place<D>(at / CHUNKS, at % CHUNKS)) = next_v[i];
        }
        __syncthreads();
        if (n0 >= BLOCK_N) load_next(n0 - BLOCK_N);

        float s[BLOCK_N / 8][4] = {};
#pragma unroll
        for (int n = 0; n < BLOCK_N / 16; ++n)
#pragma unroll
            for (int d = 0; d < D / 16; ++d) {
                unsigned kf[4];
                ldmatrix_x4(kf, sk + place<D>(n * 16 + lane / 16 * 8 + lane % 8, d * 2 + lane / 8 % 2));
                mma(s[2 * n], qf[d], kf[0], kf[1]);
                mma(s[2 * n + 1], qf[d], kf[2], kf[3]);
            }

        const bool edge = n0 + BLOCK_N > S || (CAUSAL && n0 + BLOCK_N > m0 + warp * 16);
        if (edge) {
#pragma unroll
            for (int n = 0; n < BLOCK_N / 8; ++n)
#pragma unroll
                for (int e = 0; e < 4; ++e) {
                    const int key = n0 + n * 8 + lane % 4 * 2 + (e & 1);
                    const int query = m0 + warp * 16 + lane / 4 + (e >> 1) * 8;
                    if (key >= S || (CAUSAL && key > query)) s[n][e] = -INFINITY;
                }
        }

#pragma unroll
        for (int h = 0; h < 2; ++h) {
            float top = m_i[h];
#pragma unroll
            for (int n = 0; n < BLOCK_N / 8; ++n) top = fmaxf(top, fmaxf(s[n][2 * h], s[n][2 * h + 1]));
            top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, 1));
            top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, 2));
            // A row that has seen no key yet has no maximum to subtract.
            const float shift = top == -INFINITY ? 0.0f : top * scale_log2;
            const float alpha = exp2f(m_i[h] * scale_log2 - shift);
            m_i[h] = top;
            l_i[h] *= alpha;
#pragma unroll
            for (int c = 0; c < CHUNKS; ++c) acc[c][2 * h] *= alpha, acc[c][2 * h + 1] *= alpha;
#pragma unroll
            for (int n = 0; n < BLOCK_N / 8; ++n)
#pragma unroll
                for (int e = 2 * h; e < 2 * h + 2; ++e) {
                    s[n][e] = exp2f(fmaf(s[n][e], scale_log2, -shift));
                    l_i[h] += s[n][e];
                }
        }

#pragma unroll
        for (int j = 0; j < BLOCK_N / 16; ++j) {
            const unsigned pf[4] = {pack(s[2 * j][0], s[2 * j][1]), pack(s[2 * j][2], s[2 * j][3]),
                                    pack(s[2 * j + 1][0], s[2 * j + 1][1]), pack(s[2 * j + 1][2], s[2 * j + 1][3])};
#pragma unroll
            for (int c = 0; c < CHUNKS; c += 2) {
                unsigned vf[4];
                ldmatrix_x4_trans(vf, sv + place<D>(j * 16 + lane % 16, c + lane / 16));
                mma(acc[c], pf, vf[0], vf[1]);
                mma(acc[c + 1], pf, vf[2], vf[3]);
            }
        }
    }

#pragma unroll
    for (int h = 0; h < 2; ++h) {
        l_i[h] += __shfl_xor_sync(0xffffffffu, l_i[h], 1);
        l_i[h] += __shfl_xor_sync(0xffffffffu, l_i[h], 2);
        const int row = m0 + warp * 16 + lane / 4 + h * 8;
        if (row < S) {
#pragma unroll
            for (int c = 0; c < CHUNKS; ++c)
                *reinterpret_cast<unsigned*>(out + size_t(row) * D + c * 8 + lane % 4 * 2) =
                    pack(acc[c][2 * h] / l_i[h], acc[c][2 * h + 1] / l_i[h]);
        }
    }
}
