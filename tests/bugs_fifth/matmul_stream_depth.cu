/* evoengine
name: matmul_stream_depth
precision: fp16
summary: blocks share out all steps of all tiles evenly, whatever tile they belong to; WMMA sums of a stretch are added by atomics, a second launch rounds them
tunables:
  BLOCKS: [7, 24, 132]
let:
  STEPS: ceil_div(K, 32)
  TILES: ceil_div(M, 32) * ceil_div(N, 32)
  SHARE: ceil_div(TILES * STEPS, BLOCKS)
scratch:
  sums: {dtype: float32, shape: [M, N], init: 0}
launches:
  - kernel: add_products
    grid: ["ceil_div(TILES * STEPS, SHARE)"]
    block: [128]
    args: [a, b, sums, M, N, K, STEPS, SHARE, TILES * STEPS]
  - kernel: round_sums
    grid: ["ceil_div(ceil_div(M * N, 4), 128)"]
    block: [128]
    args: [sums, out, M * N]
*/
#include <cuda_fp16.h>
#include <mma.h>

using namespace nvcuda;

constexpr int BM = 32, BN = 32, BK = 32, A_PITCH = BK + 8, B_PITCH = BN + 16, C_PITCH = BN + 4, THREADS = 128;

__global__ void __launch_bounds__(THREADS)
add_products(const half* a, const half* b, float* sums, int M, int N, int K, int steps, int share, int all) {
    __shared__ __align__(32) half a_tile[BM * A_PITCH];
    __shared__ __align__(32) half b_tile[BK * B_PITCH];
    __shared__ __align__(32) float c_tile[BM * C_PITCH];
    const int warp = threadIdx.x / 32, warp_row = warp / 2 * 16, warp_column = warp % 2 * 16;
    const int tiles_n = (N + BN - 1) / BN;
    int place = blockIdx.x * share;
    const int end = min(all, place + share);
    while (place < end) {
        const int tile = place / steps, first = place % steps;
        const int last = min(steps, first + end - place);
        const int block_row = tile / tiles_n * BM, block_column = tile % tiles_n * BN;
        wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum;
        wmma::fill_fragment(sum, 0.0f);
        for (int step = first; step < last; ++step) {
            const int depth = step * BK;
            for (int i = threadIdx.x; i < BM * BK; i += THREADS) {
                const int r = i / BK, c = i % BK;
                const bool inside = block_row + r < M && depth + c < K;
                a_tile[r * A_PITCH + c] = inside ? a[size_t(block_row + r) * K + depth + c] : __float2half(0.0f);
            }
            for (int i = threadIdx.x; i < BK * BN; i += THREADS) {
                const int r = i / BN, c = i % BN;
                const bool inside = depth + r < K && block_column + c < N;
                b_tile[r * B_PITCH + c] = inside ? b[size_t(depth + r) * N + block_column + c] : __float2half(0.0f);
            }
            __syncthreads();
            for (int d = 0; d < BK; d += 16) {
                wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> x;
                wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::row_major> y;
                wmma::load_matrix_sync(x, a_tile + warp_row * A_PITCH + d, A_PITCH);
                wmma::load_matrix_sync(y, b_tile + d * B_PITCH + warp_column, B_PITCH);
                wmma::mma_sync(sum, x, y, sum);
            }
            __syncthreads();
        }
        wmma::store_matrix_sync(c_tile + warp_row * C_PITCH + warp_column, sum, C_PITCH, wmma::mem_row_major);
        __syncthreads();
        for (int i = threadIdx.x; i < BM * BN; i += THREADS) {
            const int row = block_row + i / BN, column = block_column + i % BN;
            if (row < M && column < N) atomicAdd(sums + size_t(row) * N + column, c_tile[i / BN * C_PITCH + i % BN]);
        }
        __syncthreads();
        place += last - first;
    }
}

__global__ void round_sums(const float* sums, half* out, int count) {
    const int i = (blockIdx.x * blockDim.x + threadIdx.x) * 4;
    if (i + 3 < count) {
        const float4 four = *reinterpret_cast<const float4*>(sums + i);
        half2* to = reinterpret_cast<half2*>(out + i);
        to[0] = __floats2half2_rn(four.x, four.y);
        to[1] = __floats2half2_rn(four.z, four.w);
    } else {
        for (int j = i; j < count; ++j) out[j] = __float2half(sums[j]);
    }
}
