/* evoengine
name: matmul_parts_of_depth
precision: fp16
summary: the depth is cut into parts, blocks of eight WMMA warps each multiply one; a second launch adds the parts
tunables:
  PARTS: [3, 2, 4]
let:
  SLICE: round_up(ceil_div(K, PARTS), 32)
scratch:
  partial: {dtype: float32, shape: [PARTS, M, N]}
launches:
  - kernel: multiply
    grid: ["ceil_div(N, 64)", "ceil_div(M, 32)", PARTS]
    block: [256]
    args: [a, b, partial, M, N, K, SLICE]
  - kernel: add
    grid: ["ceil_div(N, 128)", M]
    block: [128]
    args: [partial, out, M, N]
*/
#include <cuda_fp16.h>
#include <mma.h>

using namespace nvcuda;

constexpr int ROWS = 32, COLUMNS = 64, DEPTH = 32;
constexpr int PITCH_A = DEPTH + 8, PITCH_B = COLUMNS + 8;

__global__ void __launch_bounds__(256)
multiply(const half* __restrict__ a, const half* __restrict__ b, float* __restrict__ partial, int M, int N, int K, int slice) {
    __shared__ __align__(32) half tile_a[ROWS * PITCH_A];
    __shared__ __align__(32) half tile_b[DEPTH * PITCH_B];
    __shared__ __align__(32) float staged[8][16 * 16];
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int row = blockIdx.y * ROWS, column = blockIdx.x * COLUMNS;
    const int r = warp / 4 * 16, c = warp % 4 * 16;   // the square of this warp in the block's tile
    const int begin = blockIdx.z * slice, end = min(K, begin + slice);

    wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum;
    wmma::fill_fragment(sum, 0.0f);
    for (int depth = begin; depth < end; depth += DEPTH) {
        for (int i = threadIdx.x; i < ROWS * DEPTH; i += 256) {
            const int y = i / DEPTH, x = i % DEPTH;
            const bool inside = row + y < M && depth + x < end;
            tile_a[y * PITCH_A + x] = inside ? a[size_t(row + y) * K + depth + x] : __float2half(0.0f);
        }
        for (int i = threadIdx.x; i < DEPTH * COLUMNS; i += 256) {
            const int y = i / COLUMNS, x = i % COLUMNS;
            const bool inside = depth + y < end && column + x < N;
            tile_b[y * PITCH_B + x] = inside ? b[size_t(depth + y) * N + column + x] : __float2half(0.0f);
        }
        __syncthreads();   // both tiles are complete
#pragma unroll
        for (int k = 0; k < DEPTH; k += 16) {
            wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> x;
            wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::row_major> y;
            wmma::load_matrix_sync(x, tile_a + r * PITCH_A + k, PITCH_A);
            wmma::load_matrix_sync(y, tile_b + k * PITCH_B + c, PITCH_B);
            wmma::mma_sync(sum, x, y, sum);
        }
        __syncthreads();   // they may be overwritten
    }

    wmma::store_matrix_sync(staged[warp], sum, 16, wmma::mem_row_major);
    __syncwarp();
    for (int i = lane; i < 256; i += 32) {
        const int y = row + r + i / 16, x = column + c + i % 16;
        if (y < M && x < N) partial[(size_t(blockIdx.z) * M + y) * N + x] = staged[warp][i];
    }
}

__global__ void __launch_bounds__(128)
add(const float* __restrict__ partial, half* __restrict__ out, int M, int N) {
    const int x = blockIdx.x * 128 + threadIdx.x, y = blockIdx.y;
    if (x >= N) return;
    float sum = 0.0f;
    for (int part = 0; part < PARTS; ++part) sum += partial[(size_t(part) * M + y) * N + x];
    out[size_t(y) * N + x] = __float2half(sum);
}
