/* evoengine
name: matmul_grouped_blocks
precision: fp16
summary: tiles of 32 x 64 by four warps, blocks in groups of two tile rows so that they share columns of b, slices of 32 through registers, results staged in shared memory
let:
  V: 8 if K % 8 == 0 and N % 8 == 0 else 1
launches:
  - kernel: grouped_matmul<V>
    grid: ["ceil_div(M, 32) * ceil_div(N, 64)"]
    block: [128]
    args: [a, b, out, M, N, K]
*/
#include <cuda_fp16.h>

#define BLOCK_M 32
#define BLOCK_N 64
#define BLOCK_K 32
#define GROUP_M 2

struct __align__(16) Half8 { half v[8]; };

__device__ __forceinline__ unsigned smem(const half* p) { return (unsigned)__cvta_generic_to_shared(p); }

// Eight halves of a row-major matrix, zeros outside of it.
template <int V>
__device__ __forceinline__ Half8 load8(const half* __restrict__ m, int rows, int cols, int r, int c) {
    Half8 x;
    if constexpr (V == 8) {
        if (r < rows && c < cols) return *reinterpret_cast<const Half8*>(m + (size_t)r * cols + c);
        for (int e = 0; e < 8; ++e) x.v[e] = __float2half(0.0f);
    } else {
        for (int e = 0; e < 8; ++e) x.v[e] = r < rows && c + e < cols ? m[(size_t)r * cols + c + e] : __float2half(0.0f);
    }
    return x;
}

template <int V>
__global__ void __launch_bounds__(128)
grouped_matmul(const half* __restrict__ a, const half* __restrict__ b, half* __restrict__ out, int M, int N, int K) {
    __shared__ __align__(16) half a_tile[BLOCK_M][BLOCK_K + 8];
    __shared__ __align__(16) half b_tile[BLOCK_K][BLOCK_N + 8];
    __shared__ __align__(16) half c_tile[BLOCK_M][BLOCK_N + 8];

    // Blocks walk down GROUP_M tile rows before they go to the next tile column.
    const int num_pid_m = (M + BLOCK_M - 1) / BLOCK_M, num_pid_n = (N + BLOCK_N - 1) / BLOCK_N;
    const int group = blockIdx.x / (GROUP_M * num_pid_n);
    const int first_pid_m = group * GROUP_M;
    const int group_rows = min(num_pid_m - first_pid_m, GROUP_M);
    const int local = blockIdx.x % (GROUP_M * num_pid_n);
    const int m0 = (first_pid_m + local % group_rows) * BLOCK_M;
    const int n0 = local / group_rows * BLOCK_N;

    const int tid = threadIdx.x, lane = tid & 31, warp = tid >> 5;
    const int warp_m = warp / 2 * 16, warp_n = warp % 2 * 32;
    const int a_row = tid / 4, a_col = tid % 4 * 8;   // one piece of a and two of b for each thread
    const int b_row = tid / 8, b_col = tid % 8 * 8;

    Half8 a_next = load8<V>(a, M, K, m0 + a_row, a_col);
    Half8 b_next[2] = {load8<V>(b, K, N, b_row, n0 + b_col), load8<V>(b, K, N, b_row + 16, n0 + b_col)};
    float acc[4][4] = {};
    for (int k0 = 0; k0 < K; k0 += BLOCK_K) {
        *reinterpret_cast<Half8*>(&a_tile[a_row][a_col]) = a_next;
        for (int i = 0; i < 2; ++i) *reinterpret_cast<Half8*>(&b_tile[b_row + 16 * i][b_col]) = b_next[i];
        __syncthreads();
        const int k1 = k0 + BLOCK_K;
        if (k1 < K) {
            a_next = load8<V>(a, M, K, m0 + a_row, k1 + a_col);
            for (int i = 0; i < 2; ++i) b_next[i] = load8<V>(b, K, N, k1 + b_row + 16 * i, n0 + b_col);
        }
        for (int kk = 0; kk < BLOCK_K; kk += 16) {
            unsigned af[4];
            asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                         : "=r"(af[0]), "=r"(af[1]), "=r"(af[2]), "=r"(af[3])
                         : "r"(smem(&a_tile[warp_m + lane % 16][kk + lane / 16 * 8])));
            for (int n = 0; n < 4; ++n) {
                unsigned bf[2];
                asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];"
                             : "=r"(bf[0]), "=r"(bf[1]) : "r"(smem(&b_tile[kk + lane % 16][warp_n + n * 8])));
                asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                             : "+f"(acc[n][0]), "+f"(acc[n][1]), "+f"(acc[n][2]), "+f"(acc[n][3])
                             : "r"(af[0]), "r"(af[1]), "r"(af[2]), "r"(af[3]), "r"(bf[0]), "r"(bf[1]));
            }
        }
        __syncthreads();
    }

    for (int n = 0; n < 4; ++n)
        for (int h = 0; h < 2; ++h)
            *reinterpret_cast<half2*>(&c_tile[warp_m + lane / 4 + h * 8][warp_n + n * 8 + lane % 4 * 2]) =
                __floats2half2_rn(acc[n][2 * h], acc[n][2 * h + 1]);
    __syncthreads();
    for (int i = tid; i < BLOCK_M * BLOCK_N / 8; i += 128) {
        const int r = i / (BLOCK_N / 8), c = i % (BLOCK_N / 8) * 8;
        if (m0 + r >= M || n0 + c >= N) continue;
        const Half8 x = *reinterpret_cast<const Half8*>(&c_tile[r][c]);
        half* to = out + (size_t)(m0 + r) * N + n0 + c;
        if constexpr (V == 8) {
            *reinterpret_cast<Half8*>(to) = x;
        } else {
            for (int e = 0; e < 8; ++e)
                if (n0 + c + e < N) to[e] = x.v[e];
        }
    }
}
