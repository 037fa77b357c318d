/* evoengine
name: matmul_split_k_semaphore
precision: fp16
summary: K split among blocks; the last block of a tile, found with a counter that it resets, adds the slices in order
tunables:
  MOST_SPLITS: [8, 4, 2]
let:
  TILES: ceil_div(M, 64) * ceil_div(N, 64)
  SPLITS: max(1, min(MOST_SPLITS, ceil_div(4 * SM_COUNT, TILES), ceil_div(K, 32)))
  DEPTH: round_up(ceil_div(K, SPLITS), 32)
  VECTOR: K % 8 == 0 and N % 8 == 0
require:
  - TILES <= 8192
scratch:
  slices: {dtype: float32, shape: [SPLITS, TILES, 64, 64]}
launches:
  - kernel: matmul<VECTOR>
    grid: ["ceil_div(N, 64)", "ceil_div(M, 64)", SPLITS]
    block: [128]
    args: [a, b, slices, out, M, N, K, DEPTH]
*/
#include <cuda_fp16.h>

__device__ unsigned arrived[8192];   // slices of each tile that are done; zero again after every launch

__device__ __forceinline__ void mma_16816(float (&c)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

template <bool VECTOR>
__device__ __forceinline__ uint4 eight(const __half* __restrict__ m, int row, int column, int rows, int columns, int pitch) {
    if (VECTOR) return row < rows && column < columns ? __ldg(reinterpret_cast<const uint4*>(m + size_t(row) * pitch + column)) : uint4{0, 0, 0, 0};
    __align__(16) __half piece[8];
#pragma unroll
    for (int i = 0; i < 8; ++i) piece[i] = row < rows && column + i < columns ? m[size_t(row) * pitch + column + i] : __half(0.0f);
    return *reinterpret_cast<const uint4*>(piece);
}

template <bool VECTOR>
__global__ void __launch_bounds__(128)
matmul(const __half* __restrict__ a, const __half* __restrict__ b, float* slices, __half* __restrict__ out, int M, int N, int K, int depth) {
    __shared__ __align__(16) __half ta[64][40], tb[32][72];
    __shared__ bool is_last;
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
    const int row0 = blockIdx.y * 64, column0 = blockIdx.x * 64;
    const int begin = blockIdx.z * depth, end = min(K, begin + depth);
    float c[8][4] = {};   // the warp's 16 rows, all 64 columns

    for (int k = begin; k < end; k += 32) {
#pragma unroll
        for (int i = threadIdx.x; i < 256; i += 128) {
            *reinterpret_cast<uint4*>(&ta[i / 4][i % 4 * 8]) = eight<VECTOR>(a, row0 + i / 4, k + i % 4 * 8, M, end, K);
            *reinterpret_cast<uint4*>(&tb[i / 8][i % 8 * 8]) = eight<VECTOR>(b, k + i / 8, column0 + i % 8 * 8, end, N, N);
        }
        __syncthreads();
#pragma unroll
        for (int kk = 0; kk < 32; kk += 16) {
            unsigned x[4];
#pragma unroll
            for (int i = 0; i < 4; ++i)
                x[i] = *reinterpret_cast<const unsigned*>(&ta[warp * 16 + g + i % 2 * 8][kk + t * 2 + i / 2 * 8]);
#pragma unroll
            for (int j = 0; j < 8; ++j) {
                unsigned y[2];
#pragma unroll
                for (int i = 0; i < 2; ++i) {
                    const __half2 pair = __halves2half2(tb[kk + t * 2 + i * 8][j * 8 + g], tb[kk + t * 2 + i * 8 + 1][j * 8 + g]);
                    y[i] = *reinterpret_cast<const unsigned*>(&pair);
                }
                mma_16816(c[j], x, y);
            }
        }
        __syncthreads();
    }

    const int tiles = gridDim.x * gridDim.y, tile = blockIdx.y * gridDim.x + blockIdx.x;
    float2* mine = reinterpret_cast<float2*>(slices) + (size_t(blockIdx.z) * tiles + tile) * 2048;
#pragma unroll
    for (int j = 0; j < 8; ++j)
#pragma unroll
        for (int h = 0; h < 2; ++h) mine[(warp * 16 + g + h * 8) * 32 + j * 4 + t] = make_float2(c[j][2 * h], c[j][2 * h + 1]);
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) is_last = atomicAdd(&arrived[tile], 1u) == gridDim.z - 1;
    __syncthreads();
    if (!is_last) return;
    if (threadIdx.x == 0) arrived[tile] = 0;   // for the next launch
    __threadfence();
    const float* all = slices + size_t(tile) * 4096;
    for (int i = threadIdx.x; i < 4096; i += 128) {
        float sum = 0.0f;
        for (unsigned z = 0; z < gridDim.z; ++z) sum += __ldcg(all + size_t(z) * tiles * 4096 + i);
        const int r = row0 + i / 64, n = column0 + i % 64;
        if (r < M && n < N) out[size_t(r) * N + n] = __float2half(sum);
    }
}
