/* evoengine
name: sparse_half_decoded
precision: fp16
summary: the weight is spread out in shared memory, 32 columns and 32 deep at a time, and multiplied in half precision on WMMA
launches:
  - kernel: product
    grid: ["ceil_div(N, 32)", "ceil_div(M, 32)"]
    block: [128]
    args: [x, values, places, bias, out, M, N, K]
*/
#include <cuda_fp16.h>
#include <mma.h>

using namespace nvcuda;

constexpr int TILE = 32, PITCH = TILE + 8, SUM_PITCH = TILE + 4;

__global__ void __launch_bounds__(128)
product(const float* __restrict__ x, const float* __restrict__ values, const unsigned char* __restrict__ places,
        const float* __restrict__ bias, float* __restrict__ out, int M, int N, int K) {
    __shared__ __align__(32) half inputs[TILE * PITCH];
    __shared__ __align__(32) half weights[TILE * PITCH];   // [column][depth]
    __shared__ __align__(32) float results[TILE * SUM_PITCH];
    const int warp = threadIdx.x / 32, upper = warp / 2 * 16, side = warp % 2 * 16;
    const int row = blockIdx.y * TILE, column = blockIdx.x * TILE;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum;
    wmma::fill_fragment(sum, 0.0f);
    for (int depth = 0; depth < K; depth += TILE) {
        for (int i = threadIdx.x; i < TILE * TILE; i += 128) {
            const int r = i / TILE, d = i % TILE;
            const bool inside = row + r < M;
            inputs[r * PITCH + d] = __float2half(inside ? x[size_t(row + r) * K + depth + d] : 0.0f);
            weights[r * PITCH + d] = __float2half(0.0f);
        }
        __syncthreads();
        for (int i = threadIdx.x; i < TILE * TILE / 4; i += 128) {
            const int c = i / (TILE / 4), g = i % (TILE / 4);
            if (column + c >= N) continue;
            const size_t group = (size_t(column + c) * K + depth) / 4 + g;
            const int code = places[group / 2] >> group % 2 * 4;
            half* to = weights + c * PITCH + g * 4;
            to[code & 3] = __float2half(values[group * 2]);
            to[code >> 2 & 3] = __float2half(values[group * 2 + 1]);
        }
        __syncthreads();
        for (int d = 0; d < TILE; d += 16) {
            wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> a;
            wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::col_major> b;
            wmma::load_matrix_sync(a, inputs + upper * PITCH + d, PITCH);
            wmma::load_matrix_sync(b, weights + side * PITCH + d, PITCH);
            wmma::mma_sync(sum, a, b, sum);
        }
        __syncthreads();
    }
    wmma::store_matrix_sync(results + upper * SUM_PITCH + side, sum, SUM_PITCH, wmma::mem_row_major);
    __syncthreads();
    for (int i = threadIdx.x; i < TILE * TILE; i += 128) {
        const int r = row + i / TILE, c = column + i % TILE;
        if (r < M && c < N) out[size_t(r) * N + c] = results[i / TILE * SUM_PITCH + i % TILE] + bias[c];
    }
}
