/* evoengine
name: marlin_wmma_partials
precision: fp16
summary: depth split over blockIdx.z with wmma, fp32 partial products in scratch, folded by a second launch
tunables:
  SPLITS: [4, 2, 1, 8]
  FOLD_THREADS: [256, 128]
let:
  MPAD: round_up(M, 64)
  NPAD: round_up(N, 64)
  CHUNK: round_up(ceil_div(K, SPLITS), 16)    # depth of a slice
scratch:
  partial: {dtype: float32, shape: [SPLITS, MPAD, NPAD]}
launches:
  - kernel: marlin_slices
    grid: ["NPAD // 64", "MPAD // 64", SPLITS]
    block: [256]
    args: [a, b, partial, M, N, K, CHUNK]
  - kernel: marlin_fold
    grid: ["ceil_div(ceil_div(N, 2), FOLD_THREADS)", M]
    block: [FOLD_THREADS]
    args: [partial, out, N, MPAD, NPAD, SPLITS]
*/
#include <cuda_fp16.h>
#include <mma.h>

#define TILE_M 64
#define TILE_N 64
#define TILE_K 16
#define PITCH_A (TILE_M + 8)   /* the tile of a lies transposed: [k][m] */
#define PITCH_B (TILE_N + 16)

namespace w = nvcuda::wmma;

// Four neighbouring halves of a row, carried in registers from the load to the store.
struct Quad {
    __half h[4];

    // Reads (row, col .. col + 3); what lies at or beyond (row_end, col_end) is zero.
    __device__ __forceinline__ void read(const __half* __restrict__ m, int pitch, int row, int col, int row_end, int col_end) {
        const __half* p = m + (size_t)row * pitch + col;
        if ((pitch & 3) == 0 && row < row_end && col + 3 < col_end) {
            const uint2 bits = *reinterpret_cast<const uint2*>(p);
            const __half2 lo = *reinterpret_cast<const __half2*>(&bits.x);
            const __half2 hi = *reinterpret_cast<const __half2*>(&bits.y);
            h[0] = __low2half(lo);
            h[1] = __high2half(lo);
            h[2] = __low2half(hi);
            h[3] = __high2half(hi);
            return;
        }
#pragma unroll
        for (int i = 0; i < 4; i++) h[i] = (row < row_end && col + i < col_end) ? p[i] : __ushort_as_half(0);
    }
};

__global__ void __launch_bounds__(256)
marlin_slices(const __half* __restrict__ a, const __half* __restrict__ b, float* __restrict__ partial,
              int M, int N, int K, int chunk) {
    __shared__ __align__(32) __half As[TILE_K * PITCH_A];
    __shared__ __align__(32) __half Bs[TILE_K * PITCH_B];

    const int m0 = blockIdx.y * TILE_M;
    const int n0 = blockIdx.x * TILE_N;
    const int k_begin = blockIdx.z * chunk;
    const int k_end = min(K, k_begin + chunk);   // before k_begin where nothing is left for this slice

    // each thread moves one quad of either tile per step
    const int t = threadIdx.x;
    const int a_m = t / 4, a_k = (t % 4) * 4;
    const int b_k = t / 16, b_n = (t % 16) * 4;

    // 8 warps: 4 down, 2 across, each 16 x 32
    const int warp = t / 32;
    const int wm = (warp % 4) * 16;
    const int wn = (warp / 4) * 32;

    w::fragment<w::accumulator, 16, 16, 16, float> acc[2];
    w::fill_fragment(acc[0], 0.0f);
    w::fill_fragment(acc[1], 0.0f);

    Quad next_a, next_b;
    if (k_begin < k_end) {
        next_a.read(a, K, m0 + a_m, k_begin + a_k, M, k_end);
        next_b.read(b, N, k_begin + b_k, n0 + b_n, k_end, N);
    }

    for (int k = k_begin; k < k_end; k += TILE_K) {
#pragma unroll
        for (int i = 0; i < 4; i++) {
            As[(a_k + i) * PITCH_A + a_m] = next_a.h[i];
            Bs[b_k * PITCH_B + b_n + i] = next_b.h[i];
        }
        __syncthreads();

        // the loads of the next step are under way while the tensor cores work
        if (k + TILE_K < k_end) {
            next_a.read(a, K, m0 + a_m, k + TILE_K + a_k, M, k_end);
            next_b.read(b, N, k + TILE_K + b_k, n0 + b_n, k_end, N);
        }

        w::fragment<w::matrix_a, 16, 16, 16, __half, w::col_major> fa;
        w::load_matrix_sync(fa, As + wm, PITCH_A);
#pragma unroll
        for (int j = 0; j < 2; j++) {
            w::fragment<w::matrix_b, 16, 16, 16, __half, w::row_major> fb;
            w::load_matrix_sync(fb, Bs + wn + j * 16, PITCH_B);
            w::mma_sync(acc[j], fa, fb, acc[j]);
        }
        __syncthreads();   // all warps are through with the tiles
    }

    // the scratch is padded to whole tiles, so no bounds here
    const int mpad = gridDim.y * TILE_M, npad = gridDim.x * TILE_N;
    float* mine = partial + ((size_t)blockIdx.z * mpad + m0 + wm) * npad + n0 + wn;
#pragma unroll
    for (int j = 0; j < 2; j++) w::store_matrix_sync(mine + j * 16, acc[j], npad, w::mem_row_major);
}

// One thread adds up two neighbouring outputs over the slices.
__global__ void marlin_fold(const float* __restrict__ partial, __half* __restrict__ out, int N, int mpad, int npad, int splits) {
    const int col = (blockIdx.x * blockDim.x + threadIdx.x) * 2;
    const int row = blockIdx.y;
    if (col >= N) return;

    float2 total = make_float2(0.0f, 0.0f);
    for (int s = 0; s < splits; s++) {
        const float2 p = *reinterpret_cast<const float2*>(partial + ((size_t)s * mpad + row) * npad + col);
        total.x += p.x;
        total.y += p.y;
    }

    __half* dst = out + (size_t)row * N + col;
    if (N % 2 == 0) {
        *reinterpret_cast<__half2*>(dst) = __float22half2_rn(total);
    } else {
        dst[0] = __float2half(total.x);
        if (col + 1 < N) dst[1] = __float2half(total.y);
    }
}
