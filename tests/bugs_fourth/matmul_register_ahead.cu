/* evoengine
name: matmul_register_ahead
precision: fp16
summary: tiles of 64 x 64, four warps of 32 x 32 with ldmatrix; the next tile waits in registers while this one is multiplied
launches:
  - kernel: matmul
    grid: ["ceil_div(N, 64)", "ceil_div(M, 64)"]
    block: [128]
    args: [a, b, out, M, N, K]
*/
#include <cuda_fp16.h>

constexpr int BM = 64, BN = 64, BK = 32, A_PITCH = BK + 8, B_PITCH = BN + 8, THREADS = 128;
constexpr int A_OWN = BM * BK / THREADS, B_OWN = BK * BN / THREADS;

// c[16 x 8] += a[16 x 16] * b[16 x 8]
__device__ void mma(float (&c)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

__device__ void load_left(unsigned (&a)[4], const half* from) {
    const unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(from));
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(a[0]), "=r"(a[1]), "=r"(a[2]), "=r"(a[3])
                 : "r"(address));
}

__device__ void load_right(unsigned (&b)[2], const half* from) {
    const unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(from));
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];" : "=r"(b[0]), "=r"(b[1]) : "r"(address));
}

__global__ void matmul(const half* a, const half* b, half* out, int M, int N, int K) {
    __shared__ __align__(16) half a_tile[2][BM * A_PITCH];
    __shared__ __align__(16) half b_tile[2][BK * B_PITCH];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int warp_row = warp / 2 * 32, warp_column = warp % 2 * 32;
    const int block_row = blockIdx.y * BM, block_column = blockIdx.x * BN;
    half a_next[A_OWN], b_next[B_OWN];

    auto fetch = [&](int depth) {
        for (int i = 0; i < A_OWN; ++i) {
            const int at = i * THREADS + threadIdx.x, r = block_row + at / BK, c = depth + at % BK;
            a_next[i] = r < M && c < K ? a[size_t(r) * K + c] : __float2half(0.0f);
        }
        for (int i = 0; i < B_OWN; ++i) {
            const int at = i * THREADS + threadIdx.x, r = depth + at / BN, c = block_column + at % BN;
            b_next[i] = r < K && c < N ? b[size_t(r) * N + c] : __float2half(0.0f);
        }
    };
    auto put = [&](int buffer) {
        for (int i = 0; i < A_OWN; ++i) {
            const int at = i * THREADS + threadIdx.x;
            a_tile[buffer][at / BK * A_PITCH + at % BK] = a_next[i];
        }
        for (int i = 0; i < B_OWN; ++i) {
            const int at = i * THREADS + threadIdx.x;
            b_tile[buffer][at / BN * B_PITCH + at % BN] = b_next[i];
        }
    };

    float sums[2][4][4] = {};
    const int steps = (K + BK - 1) / BK;
    fetch(0);
    put(0);
    __syncthreads();
    for (int step = 0; step < steps; ++step) {
        const int now = step % 2;
        const bool more = step + 1 < steps;
        if (more) fetch((step + 1) * BK);
        for (int d = 0; d < BK; d += 16) {
            unsigned x[2][4], y[4][2];
            for (int i = 0; i < 2; ++i)
                load_left(x[i], a_tile[now] + (warp_row + i * 16 + lane % 16) * A_PITCH + d + lane / 16 * 8);
            for (int j = 0; j < 4; ++j)
                load_right(y[j], b_tile[now] + (d + lane % 16) * B_PITCH + warp_column + j * 8);
            for (int i = 0; i < 2; ++i)
                for (int j = 0; j < 4; ++j) mma(sums[i][j], x[i], y[j]);
        }
        if (more) put(1 - now);
        __syncthreads();
    }
    for (int i = 0; i < 2; ++i)
        for (int j = 0; j < 4; ++j)
            for (int e = 0; e < 4; ++e) {
                const int row = block_row + warp_row + i * 16 + lane / 4 + e / 2 * 8;
                const int column = block_column + warp_column + j * 8 + lane % 4 * 2 + e % 2;
                if (row < M && column < N) out[size_t(row) * N + column] = __float2half(sums[i][j][e]);
            }
}
