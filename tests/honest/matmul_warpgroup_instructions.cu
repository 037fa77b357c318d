/* evoengine
name: matmul_warpgroup_instructions
precision: fp16
summary: one warpgroup a tile of 64 x 32, wgmma on core matrices in shared memory, without swizzling; other devices add up in fp32
tunables:
  DEPTH: [64, 32]
launches:
  - kernel: matmul
    grid: ["ceil_div(N, 32)", "ceil_div(M, 64)"]
    block: [128]
    args: [a, b, out, M, N, K]
*/
#include <cuda_fp16.h>

constexpr int ROWS = 64, COLUMNS = 32;

#if __CUDA_ARCH_FEAT_SM90_ALL
// Addresses and strides of core matrices of 8 rows by 16 bytes, in units of 16 bytes: `along_k` to the next 8 values of K.
__device__ __forceinline__ uint64_t descriptor(const half* start, int along_k, int along_rows) {
    const uint64_t address = __cvta_generic_to_shared(start);
    return address >> 4 | uint64_t(along_k / 16) << 16 | uint64_t(along_rows / 16) << 32;
}

__device__ __forceinline__ void multiply(float (&d)[16], uint64_t a, uint64_t b) {
    asm volatile(
        "wgmma.mma_async.sync.aligned.m64n32k16.f32.f16.f16 "
        "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15}, %16, %17, 1, 1, 1, 0, 0;"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]),
          "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15])
        : "l"(a), "l"(b));
}
#endif

// Where value k of a row lies in a tile of `rows` rows, in halves.
__device__ __forceinline__ int place(int row, int k, int rows) {
    return (k / 8 * (rows / 8) + row / 8) * 64 + row % 8 * 8 + k % 8;
}

__global__ void __launch_bounds__(128)
matmul(const half* __restrict__ a, const half* __restrict__ b, half* __restrict__ out, int M, int N, int K) {
    __shared__ __align__(128) half tile_a[ROWS * DEPTH];
    __shared__ __align__(128) half tile_b[COLUMNS * DEPTH];
    const int first_row = blockIdx.y * ROWS, first_column = blockIdx.x * COLUMNS;
    const half zero = __float2half(0.0f);
    float sums[16] = {};
    // of accumulator i: row + 8 * (i / 2 % 2), column + 8 * (i / 4) + i % 2
    const int row = threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4, column = threadIdx.x % 4 * 2;

    for (int begin = 0; begin < K; begin += DEPTH) {
        for (int i = threadIdx.x; i < ROWS * DEPTH; i += 128) {
            const int m = first_row + i / DEPTH, k = begin + i % DEPTH;
            tile_a[place(i / DEPTH, i % DEPTH, ROWS)] = m < M && k < K ? a[size_t(m) * K + k] : zero;
        }
        for (int i = threadIdx.x; i < COLUMNS * DEPTH; i += 128) {
            const int n = first_column + i % COLUMNS, k = begin + i / COLUMNS;
            tile_b[place(i % COLUMNS, i / COLUMNS, COLUMNS)] = n < N && k < K ? b[size_t(k) * N + n] : zero;
        }
#if __CUDA_ARCH_FEAT_SM90_ALL
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        __syncthreads();
        asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
        for (int k = 0; k < DEPTH; k += 16)
            multiply(sums, descriptor(tile_a + k * ROWS, ROWS * 16, 128), descriptor(tile_b + k * COLUMNS, COLUMNS * 16, 128));
        asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
        asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
#else
        __syncthreads();
        for (int k = 0; k < DEPTH; ++k)
            for (int i = 0; i < 16; ++i)
                sums[i] += __half2float(tile_a[place(row + i / 2 % 2 * 8, k, ROWS)]) *
                           __half2float(tile_b[place(column + i / 4 * 8 + i % 2, k, COLUMNS)]);
#endif
        __syncthreads();
    }
    for (int i = 0; i < 16; ++i) {
        const int m = first_row + row + i / 2 % 2 * 8, n = first_column + column + i / 4 * 8 + i % 2;
        if (m < M && n < N) out[size_t(m) * N + n] = __float2half(sums[i]);
    }
}
