/* evoengine
name: matmul_swizzled_mma
precision: fp16
summary: tiles of 128 x 128 by mma.sync; chunks of 16 bytes lie in an order that spares bank conflicts without padding; four stages of asynchronous copies
launches:
  - kernel: matmul
    grid: ["ceil_div(N, 128)", "ceil_div(M, 128)"]
    block: [256]
    shared: 4 * 16384
    args: [a, b, out, M, N, K]
*/
#include <cuda_fp16.h>

constexpr int BM = 128, BN = 128, BK = 32, STAGES = 4, STAGE = (BM + BN) * BK;   // in halves

__device__ __forceinline__ unsigned address_of(const void* p) { return static_cast<unsigned>(__cvta_generic_to_shared(p)); }

// Where eight halves of a row lie: four chunks a row of a, sixteen a row of b.
__device__ __forceinline__ int place_in_a(int row, int chunk) { return row * BK + ((chunk ^ (row / 2 % 4)) * 8); }
__device__ __forceinline__ int place_in_b(int row, int chunk) { return BM * BK + row * BN + ((chunk ^ (row % 8)) * 8); }

// Eight halves from global to shared memory, zeros where they are outside of the matrix.
__device__ __forceinline__ void copy(__half* to, const __half* matrix, int rows, int columns, int row, int column) {
    if (columns % 8 == 0) {
        const bool inside = row < rows && column < columns;
        const __half* from = inside ? matrix + size_t(row) * columns + column : matrix;
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(address_of(to)), "l"(from), "r"(inside ? 16 : 0) : "memory");
    } else {
        for (int i = 0; i < 8; ++i)
            to[i] = row < rows && column + i < columns ? matrix[size_t(row) * columns + column + i] : __float2half(0.0f);
    }
}

__global__ void __launch_bounds__(256)
matmul(const __half* __restrict__ a, const __half* __restrict__ b, __half* __restrict__ out, int M, int N, int K) {
    extern __shared__ __align__(128) __half ring[];
    const int t = threadIdx.x, lane = t % 32, warp = t / 32, wm = warp / 4 * 64, wn = warp % 4 * 32;
    const int row0 = blockIdx.y * BM, column0 = blockIdx.x * BN, steps = (K + BK - 1) / BK;
    auto load = [&](int step) {
        if (step < steps) {
            __half* stage = ring + step % STAGES * STAGE;
#pragma unroll
            for (int i = 0; i < 2; ++i) {
                const int at = i * 256 + t;
                copy(stage + place_in_a(at / 4, at % 4), a, M, K, row0 + at / 4, step * BK + at % 4 * 8);
                copy(stage + place_in_b(at / 16, at % 16), b, K, N, step * BK + at / 16, column0 + at % 16 * 8);
            }
        }
        asm volatile("cp.async.commit_group;" ::: "memory");
    };
    float sum[4][4][4] = {};
    for (int step = 0; step < STAGES - 1; ++step) load(step);
    for (int step = 0; step < steps; ++step) {
        asm volatile("cp.async.wait_group %0;" ::"n"(STAGES - 2) : "memory");
        __syncthreads();
        load(step + STAGES - 1);
        const __half* stage = ring + step % STAGES * STAGE;
#pragma unroll
        for (int k = 0; k < BK; k += 16) {
            unsigned of_a[4][4], of_b[2][4];
#pragma unroll
            for (int i = 0; i < 4; ++i)
                asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                             : "=r"(of_a[i][0]), "=r"(of_a[i][1]), "=r"(of_a[i][2]), "=r"(of_a[i][3])
                             : "r"(address_of(stage + place_in_a(wm + i * 16 + lane % 16, k / 8 + lane / 16))));
#pragma unroll
            for (int j = 0; j < 2; ++j)
                asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                             : "=r"(of_b[j][0]), "=r"(of_b[j][1]), "=r"(of_b[j][2]), "=r"(of_b[j][3])
                             : "r"(address_of(stage + place_in_b(k + lane % 16, wn / 8 + j * 2 + lane / 16))));
#pragma unroll
            for (int i = 0; i < 4; ++i)
#pragma unroll
                for (int j = 0; j < 4; ++j)
                    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                                 : "+f"(sum[i][j][0]), "+f"(sum[i][j][1]), "+f"(sum[i][j][2]), "+f"(sum[i][j][3])
                                 : "r"(of_a[i][0]), "r"(of_a[i][1]), "r"(of_a[i][2]), "r"(of_a[i][3]), "r"(of_b[j / 2][j % 2 * 2]), "r"(of_b[j / 2][j % 2 * 2 + 1]));
        }
    }
    asm volatile("cp.async.wait_all;" ::: "memory");
#pragma unroll
    for (int i = 0; i < 4; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j)
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                const int row = row0 + wm + i * 16 + lane / 4 + half * 8, column = column0 + wn + j * 8 + lane % 4 * 2;
                const float first = sum[i][j][half * 2], second = sum[i][j][half * 2 + 1];
                if (row < M && column + 1 < N && N % 2 == 0)
                    *reinterpret_cast<__half2*>(out + size_t(row) * N + column) = __floats2half2_rn(first, second);
                else if (row < M && column < N) {
                    out[size_t(row) * N + column] = __float2half(first);
                    if (column + 1 < N) out[size_t(row) * N + column + 1] = __float2half(second);
                }
            }
}
