/* evoengine
name: matmul_wmma_from_global
precision: fp16
summary: one warp a 32 x 32 tile, WMMA fragments straight from global memory; a padded copy serves odd sizes
let:
  ALIGNED: M % 32 == 0 and N % 32 == 0 and K % 16 == 0
  MP: M if ALIGNED else round_up(M, 32)
  NP: N if ALIGNED else round_up(N, 32)
  KP: K if ALIGNED else round_up(K, 16)
scratch:
  a_padded: {dtype: float16, shape: ["1 if ALIGNED else MP", "1 if ALIGNED else KP"]}
  b_padded: {dtype: float16, shape: ["1 if ALIGNED else KP", "1 if ALIGNED else NP"]}
launches:
  - kernel: pad
    grid: ["1 if ALIGNED else ceil_div(KP, 256)", "1 if ALIGNED else MP"]
    block: [256]
    args: [a, a_padded, ALIGNED, M, K, KP]
  - kernel: pad
    grid: ["1 if ALIGNED else ceil_div(NP, 256)", "1 if ALIGNED else KP"]
    block: [256]
    args: [b, b_padded, ALIGNED, K, N, NP]
  - kernel: multiply
    grid: ["ceil_div(NP, 128)", "MP // 32"]
    block: [128]
    args: [a, b, a_padded, b_padded, out, ALIGNED, M, N, NP, KP]
*/
#include <cuda_fp16.h>
#include <mma.h>
using namespace nvcuda::wmma;

__global__ void pad(const half* from, half* to, bool nothing_to_do, int rows, int columns, int pitch) {
    const int column = blockIdx.x * 256 + threadIdx.x, row = blockIdx.y;
    if (nothing_to_do || column >= pitch) return;
    to[size_t(row) * pitch + column] = row < rows && column < columns ? from[size_t(row) * columns + column] : half(0.0f);
}

__global__ void multiply(const half* a, const half* b, const half* a_padded, const half* b_padded, half* out, bool aligned,
                         int M, int N, int NP, int KP) {
    __shared__ float staged[4][16 * 16];
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int row = blockIdx.y * 32, column = blockIdx.x * 128 + warp * 32;
    if (column >= NP) return;
    const half* left = (aligned ? a : a_padded) + size_t(row) * KP;
    const half* right = (aligned ? b : b_padded) + column;

    fragment<accumulator, 16, 16, 16, float> c[2][2];
    for (int i = 0; i < 4; i++) fill_fragment(c[i / 2][i % 2], 0.0f);
    for (int k = 0; k < KP; k += 16) {
        fragment<matrix_a, 16, 16, 16, half, row_major> x[2];
        fragment<matrix_b, 16, 16, 16, half, row_major> y[2];
        for (int i = 0; i < 2; i++) load_matrix_sync(x[i], left + size_t(i) * 16 * KP + k, KP);
        for (int j = 0; j < 2; j++) load_matrix_sync(y[j], right + size_t(k) * NP + j * 16, NP);
        for (int i = 0; i < 4; i++) mma_sync(c[i / 2][i % 2], x[i / 2], y[i % 2], c[i / 2][i % 2]);
    }
    for (int i = 0; i < 4; i++) {
        store_matrix_sync(staged[warp], c[i / 2][i % 2], 16, mem_row_major);
        __syncwarp();
        for (int e = lane; e < 256; e += 32) {
            const int r = row + i / 2 * 16 + e / 16, n = column + i % 2 * 16 + e % 16;
            if (r < M && n < N) out[size_t(r) * N + n] = __float2half(staged[warp][e]);
        }
        __syncwarp();
    }
}
