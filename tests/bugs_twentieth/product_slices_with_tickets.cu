/* evoengine
name: product_slices_with_tickets
precision: fp16
summary: ldmatrix and mma.sync on swizzled tiles; K is cut into slices, and the last block of a tile rounds the sums
tunables:
  SLICES: [3, 1, 2, 4]
let:
  TILES_M: ceil_div(M, 64)
  TILES_N: ceil_div(N, 64)
  DEPTH: round_up(ceil_div(K, SLICES), 32)
scratch:
  sums: {dtype: float32, shape: [M, N], init: 0}
  tickets: {dtype: int32, shape: [TILES_M, TILES_N], init: 0}
launches:
  - kernel: multiply_slice
    grid: [TILES_N, TILES_M, SLICES]
    block: [128]
    args: [a, b, sums, tickets, out, M, N, K, DEPTH]
*/
// Four warps compute a 64 x 64 tile, 32 x 32 each, over one slice of K. The next step's data waits in registers while
// the tensor cores work on this one, and goes to the other buffer afterwards: one barrier a step is enough.
#include <cuda_fp16.h>

constexpr int BM = 64, BN = 64, BK = 32, NT = 128;

// Offsets of 8-half pieces. Eight rows that ldmatrix reads at once must lie in different banks: a row of `a` has 64
// bytes, so two of them share a wavefront, and a row of `b` has 128.
__device__ __forceinline__ int offset_a(int row, int piece) { return row * BK + ((piece ^ (row >> 1 & 3)) << 3); }
__device__ __forceinline__ int offset_b(int row, int piece) { return row * BN + ((piece ^ (row & 7)) << 3); }

// Eight halves of a row-major matrix, zeros beyond its edges.
__device__ __forceinline__ uint4 read8(const half* __restrict__ m, int rows, int cols, int row, int col) {
    uint4 r = make_uint4(0, 0, 0, 0);
    if (row >= rows || col >= cols) return r;
    const half* p = m + size_t(row) * cols + col;
    if ((cols & 7) == 0) return *reinterpret_cast<const uint4*>(p);
    half* h = reinterpret_cast<half*>(&r);
#pragma unroll
    for (int i = 0; i < 8; ++i)
        if (col + i < cols) h[i] = p[i];
    return r;
}

template <bool TRANS> __device__ __forceinline__ void ldsm4(unsigned (&r)[4], const half* p) {
    const unsigned at = static_cast<unsigned>(__cvta_generic_to_shared(p));
    if constexpr (TRANS)
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                     : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(at) : "memory");
    else
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                     : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(at) : "memory");
}
__device__ __forceinline__ void mma(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

__global__ void __launch_bounds__(NT)
multiply_slice(const half* __restrict__ a, const half* __restrict__ b, float* sums, int* tickets, half* __restrict__ out, int M,
               int N, int K, int depth) {
    __shared__ __align__(128) half sa[2][BM * BK];
    __shared__ __align__(128) half sb[2][BK * BN];
    __shared__ bool last;
    const int t = threadIdx.x, lane = t & 31, warp = t >> 5;
    const int wm = (warp >> 1) * 32, wn = (warp & 1) * 32;          // the warp's part of the tile
    const int m0 = blockIdx.y * BM, n0 = blockIdx.x * BN;
    const int k_begin = blockIdx.z * depth, k_end = min(K, k_begin + depth);

    uint4 ra[2], rb[2];
    auto fetch = [&](int k) {
#pragma unroll
        for (int i = 0; i < 2; ++i) {
            const int c = t + i * NT;
            ra[i] = read8(a, M, K, m0 + c / 4, k + c % 4 * 8);
            rb[i] = read8(b, K, N, k + c / 8, n0 + c % 8 * 8);
        }
    };
    auto put = [&](int buf) {
#pragma unroll
        for (int i = 0; i < 2; ++i) {
            const int c = t + i * NT;
            *reinterpret_cast<uint4*>(&sa[buf][offset_a(c / 4, c % 4)]) = ra[i];
            *reinterpret_cast<uint4*>(&sb[buf][offset_b(c / 8, c % 8)]) = rb[i];
        }
    };

    float acc[2][4][4] = {};                                        // 16-row tile, 8-column tile, element
    if (k_begin < k_end) {
        fetch(k_begin);
        put(0);
    }
    __syncthreads();
    int buf = 0;
    for (int k = k_begin; k < k_end; k += BK) {
        const bool more = k + BK < k_end;
        if (more) fetch(k + BK);
#pragma unroll
        for (int ks = 0; ks < BK; ks += 16) {
            unsigned fa[2][4], fb[2][4];
#pragma unroll
            for (int i = 0; i < 2; ++i) {
                ldsm4<false>(fa[i], &sa[buf][offset_a(wm + i * 16 + (lane & 15), ks / 8 + (lane >> 4))]);
                ldsm4<true>(fb[i], &sb[buf][offset_b(ks + (lane & 15), wn / 8 + i * 2 + (lane >> 4))]);
            }
#pragma unroll
            for (int i = 0; i < 2; ++i)
#pragma unroll
                for (int j = 0; j < 4; ++j) mma(acc[i][j], fa[i], fb[j >> 1][(j & 1) * 2], fb[j >> 1][(j & 1) * 2 + 1]);
        }
        if (more) put(buf ^ 1);
        __syncthreads();
        buf ^= 1;
    }

#pragma unroll
    for (int x = 0; x < 32; ++x) {
        const int i = x / 16, j = x / 4 % 4, e = x % 4;
        const int row = m0 + wm + i * 16 + (lane >> 2) + (e >> 1) * 8, col = n0 + wn + j * 8 + (lane & 3) * 2 + (e & 1);
        if (row < M && col < N) atomicAdd(&sums[size_t(row) * N + col], acc[i][j][e]);
    }
    __threadfence();         // this thread's sums come before the block's ticket
    __syncthreads();
    if (t == 0) last = atomicAdd(&tickets[blockIdx.y * gridDim.x + blockIdx.x], 1) == SLICES - 1;
    __syncthreads();
    if (!last) return;
    __threadfence();
    for (int c = t; c < BM * BN / 2; c += NT) {                     // two columns at a time
        const int row = m0 + c / (BN / 2), col = n0 + c % (BN / 2) * 2;
        if (row >= M || col >= N) continue;
        const size_t at = size_t(row) * N + col;
        if (N % 2 == 0) {
            const float2 pair = __ldcg(reinterpret_cast<const float2*>(&sums[at]));
            *reinterpret_cast<half2*>(&out[at]) = __floats2half2_rn(pair.x, pair.y);
        } else {
            out[at] = __float2half(__ldcg(&sums[at]));
            if (col + 1 < N) out[at + 1] = __float2half(__ldcg(&sums[at + 1]));
        }
    }
}
