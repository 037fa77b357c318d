#include <cuda_fp16.h>

constexpr int BM = 32, BN = 32, BK = 32, THREADS = 128;

__device__ __forceinline__ void copy16(void* to, const void* from, bool inside) {
    const unsigned shared = static_cast<unsigned>(__cvta_generic_to_shared(to));
    const int bytes = inside ? 16 : 0;
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;\n" ::"r"(shared), "l"(from), "r"(bytes) : "memory");
}

// While one pair of tiles is multiplied the next one is on its way. N and K are multiples of 8.
__global__ void __launch_bounds__(THREADS)
matmul_double_buffered(const __half* __restrict__ A, const __half* __restrict__ B, float* __restrict__ C, int M, int N, int K) {
    __shared__ __align__(16) __half As[2][BM][BK];
    __shared__ __align__(16) __half Bs[2][BK][BN];
    const int tid = threadIdx.x, row0 = blockIdx.y * BM, col0 = blockIdx.x * BN;

    auto load = [&](int stage, int k0) {
        const int r = tid / 4, piece = tid % 4 * 8;    // 128 threads: 32 rows of four pieces, in both tiles
        const bool a_inside = row0 + r < M && k0 + piece < K, b_inside = k0 + r < K && col0 + piece < N;
        copy16(&As[stage][r][piece], a_inside ? A + (row0 + r) * K + k0 + piece : A, a_inside);
        copy16(&Bs[stage][r][piece], b_inside ? B + (k0 + r) * N + col0 + piece : B, b_inside);
        asm volatile("cp.async.commit_group;\n" ::: "memory");
    };

    float acc[8] = {};
    const int r = tid / 4, c = tid % 4 * 8;
    const int steps = (K + BK - 1) / BK;
    load(0, 0);
    for (int step = 0; step < steps; ++step) {
        if (step + 1 < steps) {
            load((step + 1) % 2, (step + 1) * BK);
            asm volatile("cp.async.wait_group 1;\n" ::: "memory");
        } else {
            asm volatile("cp.async.wait_group 0;\n" ::: "memory");
        }
        __syncthreads();
        const int now = step % 2;
        for (int k = 0; k < BK; ++k) {
            const float a = __half2float(As[now][r][k]);
#pragma unroll
            for (int j = 0; j < 8; ++j) acc[j] += a * __half2float(Bs[now][k][c + j]);
        }
        __syncthreads();
    }
    if (row0 + r < M)
        for (int j = 0; j < 8; ++j)
            if (col0 + c + j < N) C[(row0 + r) * N + col0 + c + j] = acc[j];
}
