/* evoengine
name: gated_wmma_twins
precision: fp16
summary: tiles of 32 x 32 on wmma, each warp with one 16 x 16 sum of either product; rows and both matrices arrive by cp.async in two stages, and the sums meet in shared memory
launches:
  - kernel: project
    grid: ["ceil_div(N, 32)", "ceil_div(M, 32)"]
    block: [128]
    args: [x, gate, up, out, M, N, K]
*/
#include <cuda_fp16.h>
#include <mma.h>

using namespace nvcuda;

constexpr int THREADS = 128, TILE = 32, PITCH = TILE + 8, OUT_PITCH = TILE + 4;

// A thread copies eight halves of a tile, zeros outside of the matrix.
__device__ __forceinline__ void copy(__half (&to)[TILE][PITCH], const __half* __restrict__ from, int row, int depth,
                                     int rows, int K) {
    const int r = threadIdx.x / 4, c = threadIdx.x % 4 * 8;
    const bool inside = row + r < rows && depth + c < K;
    const __half* source = inside ? from + size_t(row + r) * K + depth + c : from;
    const unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(&to[r][c]));
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(address), "l"(source), "r"(inside ? 16 : 0) : "memory");
}

__device__ __forceinline__ float silu(float x) { return x / (1.0f + expf(-x)); }

__global__ void __launch_bounds__(THREADS)
project(const __half* __restrict__ x, const __half* __restrict__ gate, const __half* __restrict__ up,
        __half* __restrict__ out, int M, int N, int K) {
    __shared__ __align__(32) __half rows[2][TILE][PITCH], gates[2][TILE][PITCH], ups[2][TILE][PITCH];
    __shared__ __align__(32) float products[2][TILE][OUT_PITCH];
    const int warp = threadIdx.x / 32, warp_row = warp / 2 * 16, warp_column = warp % 2 * 16;
    const int block_row = blockIdx.y * TILE, block_column = blockIdx.x * TILE;
    const int slices = (K + TILE - 1) / TILE;

    wmma::fragment<wmma::accumulator, 16, 16, 16, float> gate_sum, up_sum;
    wmma::fill_fragment(gate_sum, 0.0f);
    wmma::fill_fragment(up_sum, 0.0f);
    for (int s = -1; s < slices; ++s) {
        if (s + 1 < slices) {
            const int stage = (s + 1) % 2, depth = (s + 1) * TILE;
            copy(rows[stage], x, block_row, depth, M, K);
            copy(gates[stage], gate, block_column, depth, N, K);
            copy(ups[stage], up, block_column, depth, N, K);
        }
        asm volatile("cp.async.commit_group;" ::: "memory");
        if (s < 0) continue;
        asm volatile("cp.async.wait_group 1;" ::: "memory");
        __syncthreads();
#pragma unroll
        for (int k = 0; k < TILE; k += 16) {
            wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> a;
            wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::col_major> b;
            wmma::load_matrix_sync(a, &rows[s % 2][warp_row][k], PITCH);
            wmma::load_matrix_sync(b, &gates[s % 2][warp_column][k], PITCH);
            wmma::mma_sync(gate_sum, a, b, gate_sum);
            wmma::load_matrix_sync(b, &ups[s % 2][warp_column][k], PITCH);
            wmma::mma_sync(up_sum, a, b, up_sum);
        }
        __syncthreads();   // this stage is filled again in the next step
    }

    wmma::store_matrix_sync(&products[0][warp_row][warp_column], gate_sum, OUT_PITCH, wmma::mem_row_major);
    wmma::store_matrix_sync(&products[1][warp_row][warp_column], up_sum, OUT_PITCH, wmma::mem_row_major);
    __syncthreads();
    for (int i = threadIdx.x; i < TILE * TILE / 2; i += THREADS) {
        const int r = i / (TILE / 2), c = i % (TILE / 2) * 2, m = block_row + r, n = block_column + c;
        if (m >= M || n >= N) continue;
        const float2 g = *reinterpret_cast<const float2*>(&products[0][r][c]);
        const float2 u = *reinterpret_cast<const float2*>(&products[1][r][c]);
        *reinterpret_cast<__half2*>(out + size_t(m) * N + n) = __floats2half2_rn(silu(g.x) * u.x, silu(g.y) * u.y);
    }
}
