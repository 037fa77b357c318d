/* evoengine
name: matmul_added_shares
precision: fp16
summary: WMMA tiles of 32 x 64; two blocks share the depth of a tile and add to it in memory, and a second launch rounds the sums
let:
  SHARE: round_up(ceil_div(K, 2), 16)     # depth of a block
scratch:
  sums: {dtype: float32, shape: [M, N], init: 0}
launches:
  - kernel: add_share
    grid: ["ceil_div(N, 64)", "ceil_div(M, 32)", 2]
    block: [256]
    args: [a, b, sums, M, N, K, SHARE]
  - kernel: round_sums
    grid: ["ceil_div(M * N, 1024)"]
    block: [256]
    args: [sums, out, M * N]
*/
#include <cuda_fp16.h>
#include <mma.h>

using namespace nvcuda;

constexpr int ROWS = 32, COLUMNS = 64, DEPTH = 16, THREADS = 256;
constexpr int PITCH_A = DEPTH + 8, PITCH_B = COLUMNS + 8, PITCH_OUT = COLUMNS + 4;

__global__ void __launch_bounds__(THREADS)
add_share(const half* __restrict__ a, const half* __restrict__ b, float* __restrict__ sums, int M, int N, int K, int share) {
    __shared__ __align__(32) half left[2][ROWS * PITCH_A];
    __shared__ __align__(32) half right[2][DEPTH * PITCH_B];
    __shared__ __align__(32) float tile[ROWS * PITCH_OUT];
    const int first_row = blockIdx.y * ROWS, first_column = blockIdx.x * COLUMNS;
    const int begin = blockIdx.z * share, end = min(K, begin + share);
    const int warp = threadIdx.x / 32, row = warp / 4 * 16, column = warp % 4 * 16;

    auto load = [&](int stage, int from) {
        for (int i = threadIdx.x; i < ROWS * DEPTH; i += THREADS) {
            const int r = i / DEPTH, c = i % DEPTH;
            left[stage][r * PITCH_A + c] =
                first_row + r < M && from + c < end ? a[size_t(first_row + r) * K + from + c] : __float2half(0.0f);
        }
        for (int i = threadIdx.x; i < DEPTH * COLUMNS; i += THREADS) {
            const int r = i / COLUMNS, c = i % COLUMNS;
            right[stage][r * PITCH_B + c] =
                from + r < K && first_column + c < N ? b[size_t(from + r) * N + first_column + c] : __float2half(0.0f);
        }
    };

    wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum;
    wmma::fill_fragment(sum, 0.0f);
    load(0, begin);
    __syncthreads();
    int stage = 0;
    for (int from = begin; from < end; from += DEPTH) {
        if (from + DEPTH < end) load(stage ^ 1, from + DEPTH);
        wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> x;
        wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::row_major> y;
        wmma::load_matrix_sync(x, &left[stage][row * PITCH_A], PITCH_A);
        wmma::load_matrix_sync(y, &right[stage][column], PITCH_B);
        wmma::mma_sync(sum, x, y, sum);
        stage ^= 1;
        __syncthreads();
    }

    wmma::store_matrix_sync(&tile[row * PITCH_OUT + column], sum, PITCH_OUT, wmma::mem_row_major);
    __syncthreads();
    for (int i = threadIdx.x; i < ROWS * COLUMNS; i += THREADS) {
        const int r = i / COLUMNS, c = i % COLUMNS;
        if (first_row + r < M && first_column + c < N)
            atomicAdd(&sums[size_t(first_row + r) * N + first_column + c], tile[r * PITCH_OUT + c]);
    }
}

// Four sums a thread.
__global__ void __launch_bounds__(256) round_sums(const float* __restrict__ sums, half* __restrict__ out, int count) {
    for (int j = 0; j < 4; ++j) {
        const int i = blockIdx.x * 1024 + j * 256 + threadIdx.x;
        if (i < count) out[i] = __float2half(sums[i]);
    }
}
