/* evoengine
name: gelu_network_fused
precision: fp16
summary: a block has 64 rows; inner numbers, 64 at a time, go through shared memory only, between two products of tensor instructions
launches:
  - kernel: network
    grid: ["ceil_div(M, 64)"]
    block: [128]
    args: [x, up, down, out, M, F]
*/
#include <cuda_fp16.h>
#include <mma.h>

using namespace nvcuda;

__device__ __forceinline__ float gelu(float x) { return 0.5f * x * (1.0f + tanhf(0.7978845608f * (x + 0.044715f * x * x * x))); }

__global__ void __launch_bounds__(128)
network(const __half* __restrict__ x, const __half* __restrict__ up, const __half* __restrict__ down, __half* __restrict__ out, int M, int F) {
    __shared__ __align__(32) __half rows[64][72], inner[64][72];
    __shared__ __align__(32) float patches[4][16 * 20];
    const int t = threadIdx.x, warp = t / 32, lane = t % 32, row0 = blockIdx.x * 64;
    for (int i = t; i < 512; i += 128) {
        const int r = i / 8, c = i % 8 * 8;
        *reinterpret_cast<int4*>(&rows[r][c]) = row0 + r < M ? *reinterpret_cast<const int4*>(x + size_t(row0 + r) * 64 + c) : make_int4(0, 0, 0, 0);
    }
    __syncthreads();
    wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> left[4], of_inner;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::row_major> right;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum, result[4];
#pragma unroll
    for (int k = 0; k < 4; ++k) wmma::load_matrix_sync(left[k], &rows[warp * 16][k * 16], 72), wmma::fill_fragment(result[k], 0.0f);
    for (int f0 = 0; f0 < F; f0 += 64) {
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            wmma::fill_fragment(sum, 0.0f);
#pragma unroll
            for (int k = 0; k < 4; ++k) {
                wmma::load_matrix_sync(right, up + size_t(k) * 16 * F + f0 + j * 16, F);
                wmma::mma_sync(sum, left[k], right, sum);
            }
            wmma::store_matrix_sync(patches[warp], sum, 20, wmma::mem_row_major);
            __syncwarp();
            for (int i = lane; i < 256; i += 32) inner[warp * 16 + i / 16][j * 16 + i % 16] = __float2half(gelu(patches[warp][i / 16 * 20 + i % 16]));
            __syncwarp();
        }
#pragma unroll
        for (int k = 0; k < 4; ++k) {
            wmma::load_matrix_sync(of_inner, &inner[warp * 16][k * 16], 72);
#pragma unroll
            for (int j = 0; j < 4; ++j) {
                wmma::load_matrix_sync(right, down + size_t(f0 + k * 16) * 64 + j * 16, 64);
                wmma::mma_sync(result[j], of_inner, right, result[j]);
            }
        }
        __syncwarp();
    }
#pragma unroll
    for (int j = 0; j < 4; ++j) {
        wmma::store_matrix_sync(patches[warp], result[j], 20, wmma::mem_row_major);
        __syncwarp();
        for (int i = lane; i < 256; i += 32) {
            const int row = row0 + warp * 16 + i / 16;
            if (row < M) out[size_t(row) * 64 + j * 16 + i % 16] = __float2half(patches[warp][i / 16 * 20 + i % 16]);
        }
        __syncwarp();
    }
}
