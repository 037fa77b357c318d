/* evoengine
name: matmul_wmma_prefetch
precision: fp16
summary: tiles of 64 x 64 x 32 on WMMA, two stages in shared memory; the next slice waits in registers while this one is multiplied
let:
  V: 8 if K % 8 == 0 and N % 8 == 0 else 1
launches:
  - kernel: matmul<V>
    grid: ["ceil_div(N, 64)", "ceil_div(M, 64)"]
    block: [128]
    args: [a, b, out, M, N, K]
*/
#include <cuda_fp16.h>
#include <mma.h>

using namespace nvcuda;

constexpr int BM = 64, BN = 64, BK = 32, THREADS = 128;
constexpr int A_PITCH = BK + 8, B_PITCH = BN + 8, C_PITCH = BN + 4;

template <int V> struct alignas(2 * V) Pack { half value[V]; };

template <int V>
__global__ void __launch_bounds__(THREADS)
matmul(const half* __restrict__ a, const half* __restrict__ b, half* __restrict__ out, int M, int N, int K) {
    constexpr int PACKS = BM * BK / V / THREADS;
    __shared__ __align__(32) half a_tile[2][BM * A_PITCH];
    __shared__ __align__(32) half b_tile[2][BK * B_PITCH];
    __shared__ __align__(32) float c_tile[BM * C_PITCH];
    const int warp = threadIdx.x / 32, warp_row = warp / 2 * 32, warp_column = warp % 2 * 32;
    const int block_row = blockIdx.y * BM, block_column = blockIdx.x * BN;

    Pack<V> next_a[PACKS], next_b[PACKS];
    auto fetch = [&](int depth) {
        for (int p = 0; p < PACKS; ++p) {
            const int i = (p * THREADS + threadIdx.x) * V;
            next_a[p] = next_b[p] = Pack<V>{};
            const int row = block_row + i / BK, left = depth + i % BK;
            if (row < M && left < K) next_a[p] = *reinterpret_cast<const Pack<V>*>(a + size_t(row) * K + left);
            const int down = depth + i / BN, column = block_column + i % BN;
            if (down < K && column < N) next_b[p] = *reinterpret_cast<const Pack<V>*>(b + size_t(down) * N + column);
        }
    };
    auto put = [&](int stage) {
        for (int p = 0; p < PACKS; ++p) {
            const int i = (p * THREADS + threadIdx.x) * V;
            *reinterpret_cast<Pack<V>*>(&a_tile[stage][i / BK * A_PITCH + i % BK]) = next_a[p];
            *reinterpret_cast<Pack<V>*>(&b_tile[stage][i / BN * B_PITCH + i % BN]) = next_b[p];
        }
    };

    wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum[2][2];
    for (int i = 0; i < 2; ++i)
        for (int j = 0; j < 2; ++j) wmma::fill_fragment(sum[i][j], 0.0f);

    const int steps = (K + BK - 1) / BK;
    fetch(0);
    put(0);
    __syncthreads();
    for (int step = 0; step < steps; ++step) {
        const int stage = step % 2;
        if (step + 1 < steps) fetch((step + 1) * BK);
        for (int d = 0; d < BK; d += 16) {
            wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> x[2];
            wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::row_major> y[2];
            for (int i = 0; i < 2; ++i) {
                wmma::load_matrix_sync(x[i], &a_tile[stage][(warp_row + i * 16) * A_PITCH + d], A_PITCH);
                wmma::load_matrix_sync(y[i], &b_tile[stage][d * B_PITCH + warp_column + i * 16], B_PITCH);
            }
            for (int i = 0; i < 2; ++i)
                for (int j = 0; j < 2; ++j) wmma::mma_sync(sum[i][j], x[i], y[j], sum[i][j]);
        }
        if (step + 1 < steps) put(stage ^ 1);
        __syncthreads();
    }

    for (int i = 0; i < 2; ++i)
        for (int j = 0; j < 2; ++j)
            wmma::store_matrix_sync(&c_tile[(warp_row + i * 16) * C_PITCH + warp_column + j * 16], sum[i][j], C_PITCH,
                                    wmma::mem_row_major);
    __syncthreads();
    for (int i = threadIdx.x; i < BM * BN; i += THREADS) {
        const int row = block_row + i / BN, column = block_column + i % BN;
        if (row < M && column < N) out[size_t(row) * N + column] = __float2half(c_tile[i / BN * C_PITCH + i % BN]);
    }
}
