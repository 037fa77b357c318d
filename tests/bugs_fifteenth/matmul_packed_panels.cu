/* evoengine
name: matmul_packed_panels
precision: fp16
summary: two launches pack both operands into panels that are padded with zeros, b transposed; a third multiplies them with mma.sync, the next slice on its way by cp.async
let:
  ROWS: round_up(M, 64)
  COLUMNS: round_up(N, 64)
  DEPTH: round_up(K, 32)
scratch:
  left: {dtype: float16, shape: [ROWS, DEPTH]}
  right: {dtype: float16, shape: [COLUMNS, DEPTH]}
launches:
  - kernel: pack_left
    grid: ["DEPTH // 32", "ROWS // 8"]
    block: [32, 8]
    args: [a, left, M, K, DEPTH]
  - kernel: pack_right
    grid: ["COLUMNS // 32", "DEPTH // 32"]
    block: [32, 8]
    args: [b, right, K, N, DEPTH]
  - kernel: multiply
    grid: ["COLUMNS // 64", "ROWS // 64"]
    block: [128]
    args: [left, right, out, M, N, DEPTH]
*/
#include <cuda_fp16.h>

constexpr int THREADS = 128, TILE = 64, BK = 32, PITCH = BK + 8;

__global__ void __launch_bounds__(256)
pack_left(const __half* __restrict__ a, __half* __restrict__ left, int M, int K, int depth) {
    const int k = blockIdx.x * 32 + threadIdx.x, row = blockIdx.y * 8 + threadIdx.y;
    const __half zero = __float2half(0.0f);
    left[size_t(row) * depth + k] = row < M && k < K ? a[size_t(row) * K + k] : zero;
}

__global__ void __launch_bounds__(256)
pack_right(const __half* __restrict__ b, __half* __restrict__ right, int K, int N, int depth) {
    __shared__ __half tile[32][34];
    const int n = blockIdx.x * 32, k = blockIdx.y * 32;
    for (int r = threadIdx.y; r < 32; r += 8) {
        const int row = k + r, column = n + threadIdx.x;
        tile[r][threadIdx.x] = row < K && column < N ? b[size_t(row) * N + column] : __float2half(0.0f);
    }
    __syncthreads();
    for (int r = threadIdx.y; r < 32; r += 8)
        right[size_t(n + r) * depth + k + threadIdx.x] = tile[threadIdx.x][r];
}

__device__ __forceinline__ void copy_async(__half* to, const __half* from) {
    const unsigned place = static_cast<unsigned>(__cvta_generic_to_shared(to));
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(place), "l"(from) : "memory");
}

__device__ __forceinline__ unsigned word(const __half* two) {
    return *reinterpret_cast<const unsigned*>(two);
}

// 64 rows of a panel from `first`, 32 columns from `k`.
__device__ __forceinline__ void stage_panel(__half (*tile)[PITCH], const __half* __restrict__ panel, int first,
                                            int k, int depth) {
    for (int i = threadIdx.x; i < TILE * BK / 8; i += THREADS) {
        const int r = i / (BK / 8), c = i % (BK / 8) * 8;
        copy_async(&tile[r][c], panel + size_t(first + r) * depth + k + c);
    }
}

__global__ void __launch_bounds__(THREADS)
multiply(const __half* __restrict__ left, const __half* __restrict__ right, __half* __restrict__ out, int M, int N,
         int depth) {
    __shared__ __align__(16) __half rows[2][TILE][PITCH], columns[2][TILE][PITCH];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, group = lane / 4, quad = lane % 4;
    const int warp_row = warp / 2 * 32, warp_column = warp % 2 * 32;
    const int block_row = blockIdx.y * TILE, block_column = blockIdx.x * TILE;

    float sums[2][4][4] = {};
    stage_panel(rows[0], left, block_row, 0, depth);
    stage_panel(columns[0], right, block_column, 0, depth);
    asm volatile("cp.async.commit_group;" ::: "memory");
    for (int k = 0, stage = 0; k < depth; k += BK, stage ^= 1) {
        if (k + BK < depth) {
            stage_panel(rows[stage ^ 1], left, block_row, k + BK, depth);
            stage_panel(columns[stage ^ 1], right, block_column, k + BK, depth);
        }
        asm volatile("cp.async.commit_group;" ::: "memory");
        asm volatile("cp.async.wait_group 1;" ::: "memory");
        __syncthreads();
#pragma unroll
        for (int d = 0; d < BK; d += 16) {
            unsigned a[2][4];
#pragma unroll
            for (int i = 0; i < 2; ++i) {
                const __half* from = &rows[stage][warp_row + i * 16 + group][d + quad * 2];
                a[i][0] = word(from);
                a[i][1] = word(from + 8 * PITCH);
                a[i][2] = word(from + 8);
                a[i][3] = word(from + 8 * PITCH + 8);
            }
#pragma unroll
            for (int j = 0; j < 4; ++j) {
                const __half* from = &columns[stage][warp_column + j * 8 + group][d + quad * 2];
                const unsigned b0 = word(from), b1 = word(from + 8);
#pragma unroll
                for (int i = 0; i < 2; ++i)
                    asm volatile(
                        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
                        "{%0,%1,%2,%3};"
                        : "+f"(sums[i][j][0]), "+f"(sums[i][j][1]), "+f"(sums[i][j][2]), "+f"(sums[i][j][3])
                        : "r"(a[i][0]), "r"(a[i][1]), "r"(a[i][2]), "r"(a[i][3]), "r"(b0), "r"(b1));
            }
        }
        __syncthreads();
    }

#pragma unroll
    for (int i = 0; i < 2; ++i) {
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            const int m = block_row + warp_row + i * 16 + h * 8 + group;
            if (m >= M) continue;
#pragma unroll
            for (int j = 0; j < 4; ++j) {
                const int n = block_column + warp_column + j * 8 + quad * 2;
                const __half2 pair = __floats2half2_rn(sums[i][j][h * 2], sums[i][j][h * 2 + 1]);
                __half* target = out + size_t(m) * N + n;
                if (N % 2 == 0 && n + 1 < N) {
                    *reinterpret_cast<__half2*>(target) = pair;
                } else {
                    if (n < N) target[0] = pair.x;
                    if (n + 1 < N) target[1] = pair.y;
                }
            }
        }
    }
}
