/* evoengine
name: matmul_register_blocks
precision: fp16
summary: plain multiply-adds; a thread keeps 4 x 8 sums, the next tiles wait in registers while two buffers in shared memory take turns
tunables:
  BM: [64, 32]
  BN: [64]
  BK: [16, 32]
let:
  THREADS: "BM * BN // 32"
launches:
  - kernel: "matmul<THREADS>"
    grid: ["ceil_div(N, BN)", "ceil_div(M, BM)"]
    block: [THREADS]
    args: [a, b, out, M, N, K]
*/
#include <cuda_fp16.h>

constexpr int TM = 4, TN = 8;   // sums of a thread

template <int THREADS>
__global__ void __launch_bounds__(THREADS)
matmul(const __half* __restrict__ a, const __half* __restrict__ b, __half* __restrict__ out,
       int M, int N, int K) {
    constexpr int A_EACH = BM * BK / THREADS, B_EACH = BK * BN / THREADS;
    __shared__ float as[2][BK][BM + 4];   // transposed: depth first
    __shared__ float bs[2][BK][BN];

    const int tid = threadIdx.x;
    const int row0 = blockIdx.y * BM, col0 = blockIdx.x * BN;
    const int tr = tid / (BN / TN) * TM, tc = tid % (BN / TN) * TN;
    __half next_a[A_EACH], next_b[B_EACH];

    auto load = [&](int k0) {
#pragma unroll
        for (int i = 0; i < A_EACH; ++i) {
            const int e = i * THREADS + tid, r = row0 + e / BK, k = k0 + e % BK;
            next_a[i] = r < M && k < K ? a[static_cast<size_t>(r) * K + k] : __float2half(0.0f);
        }
#pragma unroll
        for (int i = 0; i < B_EACH; ++i) {
            const int e = i * THREADS + tid, k = k0 + e / BN, c = col0 + e % BN;
            next_b[i] = k < K && c < N ? b[static_cast<size_t>(k) * N + c] : __float2half(0.0f);
        }
    };
    auto store = [&](int buffer) {
#pragma unroll
        for (int i = 0; i < A_EACH; ++i) {
            const int e = i * THREADS + tid;
            as[buffer][e % BK][e / BK] = __half2float(next_a[i]);
        }
#pragma unroll
        for (int i = 0; i < B_EACH; ++i) {
            const int e = i * THREADS + tid;
            bs[buffer][e / BN][e % BN] = __half2float(next_b[i]);
        }
    };

    float sums[TM][TN] = {};
    load(0);
    store(0);
    __syncthreads();

    const int steps = (K + BK - 1) / BK;
    for (int step = 0; step < steps; ++step) {
        const int now = step & 1;
        if (step + 1 < steps) load((step + 1) * BK);
#pragma unroll
        for (int k = 0; k < BK; ++k) {
            float x[TM], y[TN];
#pragma unroll
            for (int i = 0; i < TM; ++i) x[i] = as[now][k][tr + i];
#pragma unroll
            for (int j = 0; j < TN; ++j) y[j] = bs[now][k][tc + j];
#pragma unroll
            for (int i = 0; i < TM; ++i)
#pragma unroll
                for (int j = 0; j < TN; ++j) sums[i][j] = fmaf(x[i], y[j], sums[i][j]);
        }
        if (step + 1 < steps) store(now ^ 1);
        __syncthreads();
    }

#pragma unroll
    for (int i = 0; i < TM; ++i) {
        const int r = row0 + tr + i;
        if (r >= M) break;
#pragma unroll
        for (int j = 0; j < TN; ++j) {
            const int c = col0 + tc + j;
            if (c < N) out[static_cast<size_t>(r) * N + c] = __float2half_rn(sums[i][j]);
        }
    }
}
