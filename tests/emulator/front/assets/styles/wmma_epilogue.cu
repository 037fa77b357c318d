#include <cuda_fp16.h>
#include <mma.h>
using namespace nvcuda;

// C = relu(A B + bias), tiles of 16 by 16 and a warp for each; the epilogue goes through shared memory.
constexpr int TILE = 16;
constexpr int WARPS_PER_BLOCK = 4;

__global__ void __launch_bounds__(WARPS_PER_BLOCK * 32)
wmma_epilogue(const half* __restrict__ A, const half* __restrict__ B, const float* __restrict__ bias, half* __restrict__ C, int M, int N, int K) {
    __shared__ __align__(32) float staging[WARPS_PER_BLOCK][TILE * TILE];
    const int warp = threadIdx.x / warpSize, lane = threadIdx.x % warpSize;
    const int tile = blockIdx.x * WARPS_PER_BLOCK + warp, tiles_n = N / TILE;
    const int row = tile / tiles_n * TILE, col = tile % tiles_n * TILE;
    if (row >= M) return;
    wmma::fragment<wmma::matrix_a, TILE, TILE, TILE, half, wmma::row_major> a;
    wmma::fragment<wmma::matrix_b, TILE, TILE, TILE, half, wmma::row_major> b;
    wmma::fragment<wmma::accumulator, TILE, TILE, TILE, float> acc;
    wmma::fill_fragment(acc, 0.0f);
    for (int k = 0; k < K; k += TILE) {
        wmma::load_matrix_sync(a, A + row * K + k, K);
        wmma::load_matrix_sync(b, B + k * N + col, N);
        wmma::mma_sync(acc, a, b, acc);
    }
#pragma unroll
    for (int t = 0; t < acc.num_elements; t++) acc.x[t] *= 0.125f;
    wmma::store_matrix_sync(&staging[warp][0], acc, TILE, wmma::mem_row_major);
    __syncwarp();
    for (int e = lane * 2; e < TILE * TILE; e += 64) {
        const int r = e / TILE, c = e % TILE;
        float2 v = *reinterpret_cast<float2*>(&staging[warp][e]);
        v.x = fmaxf(v.x + bias[col + c], 0.f);
        v.y = fmaxf(v.y + bias[col + c + 1], 0.f);
        *reinterpret_cast<half2*>(&C[(row + r) * N + col + c]) = __float22half2_rn(v);
    }
}
