/* evoengine
name: matmul_loaded_fragments
precision: fp16
summary: tiles of 64 x 64, four warps of 32 x 32; two buffers in shared memory, fragments of mma.sync loaded word by word, b transposed on the way in
launches:
  - kernel: matmul
    grid: ["ceil_div(N, 64)", "ceil_div(M, 64)"]
    block: [128]
    args: [a, b, out, M, N, K]
*/
#include <cuda_fp16.h>

constexpr int BM = 64, BN = 64, BK = 32, PITCH = BK + 8, THREADS = 128;

// c[16 x 8] += a[16 x 16] * b[16 x 8]
__device__ void mma(float (&c)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

__device__ unsigned word(const half* from) { return *reinterpret_cast<const unsigned*>(from); }

__global__ void matmul(const half* a, const half* b, half* out, int M, int N, int K) {
    __shared__ __align__(16) half a_tile[2][BM * PITCH];  // [row][depth]
    __shared__ __align__(16) half b_tile[2][BN * PITCH];  // [column][depth]
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int group = lane / 4, pair = lane % 4 * 2;
    const int warp_row = warp / 2 * 32, warp_column = warp % 2 * 32;
    const int block_row = blockIdx.y * BM, block_column = blockIdx.x * BN;

    auto load = [&](int buffer, int depth) {
        for (int i = threadIdx.x; i < BM * BK; i += THREADS) {
            const int r = i / BK, c = i % BK;
            const bool inside = block_row + r < M && depth + c < K;
            a_tile[buffer][r * PITCH + c] = inside ? a[size_t(block_row + r) * K + depth + c] : __float2half(0.0f);
        }
        for (int i = threadIdx.x; i < BN * BK; i += THREADS) {
            const int r = i / BN, c = i % BN;
            const bool inside = depth + r < K && block_column + c < N;
            b_tile[buffer][c * PITCH + r] = inside ? b[size_t(depth + r) * N + block_column + c] : __float2half(0.0f);
        }
    };

    float sums[2][4][4] = {};
    const int steps = (K + BK - 1) / BK;
    load(0, 0);
    __syncthreads();
    for (int step = 0; step < steps; ++step) {
        const int now = step % 2;
        if (step + 1 < steps) load(1 - now, (step + 1) * BK);
        for (int d = 0; d < BK; d += 16) {
            unsigned x[2][4], y[4][2];
            for (int i = 0; i < 2; ++i) {
                const half* from = a_tile[now] + (warp_row + i * 16 + group) * PITCH + d + pair;
                x[i][0] = word(from);
                x[i][1] = word(from + 8 * PITCH);
                x[i][2] = word(from + 8);
                x[i][3] = word(from + 8 * PITCH + 8);
            }
            for (int j = 0; j < 4; ++j) {
                const half* from = b_tile[now] + (warp_column + j * 8 + group) * PITCH + d + pair;
                y[j][0] = word(from);
                y[j][1] = word(from + 8);
            }
            for (int i = 0; i < 2; ++i)
                for (int j = 0; j < 4; ++j) mma(sums[i][j], x[i], y[j]);
        }
        __syncthreads();
    }
    for (int i = 0; i < 2; ++i)
        for (int j = 0; j < 4; ++j)
            for (int e = 0; e < 4; ++e) {
                const int row = block_row + warp_row + i * 16 + group + e / 2 * 8;
                const int column = block_column + warp_column + j * 8 + pair + e % 2;
                if (row < M && column < N) out[size_t(row) * N + column] = __float2half(sums[i][j][e]);
            }
}
