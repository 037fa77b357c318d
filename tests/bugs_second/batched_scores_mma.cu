/* evoengine
name: batched_scores_mma
precision: fp16
summary: a warp computes a tile of 16 x 8 with mma.sync; fragments come straight from memory
launches:
  - kernel: scores
    grid: ["ceil_div(N, 8)", "ceil_div(M, 16)", B]
    block: [32]
    args: [a, b, out, M, N, K, alpha]
*/
#include <cuda_fp16.h>

// Two neighbours of a row as one register, zeros outside of the matrix.
__device__ unsigned pair_at(const half* matrix, int row, int rows, int k, int K) {
    return row < rows && k < K ? *reinterpret_cast<const unsigned*>(matrix + size_t(row) * K + k) : 0u;
}

__global__ void scores(const half* a, const half* b, half* out, int M, int N, int K, float alpha) {
    const int group = threadIdx.x / 4, member = threadIdx.x % 4;
    const int m0 = blockIdx.y * 16, n0 = blockIdx.x * 8;
    const half* matrix_a = a + size_t(blockIdx.z) * M * K;
    const half* matrix_b = b + size_t(blockIdx.z) * N * K;
    float sum[4] = {0.0f, 0.0f, 0.0f, 0.0f};
    for (int k0 = 0; k0 < K; k0 += 16) {
        const int k = k0 + 2 * member;
        const unsigned a0 = pair_at(matrix_a, m0 + group, M, k, K);
        const unsigned a1 = pair_at(matrix_a, m0 + group + 8, M, k, K);
        const unsigned a2 = pair_at(matrix_a, m0 + group, M, k + 8, K);
        const unsigned a3 = pair_at(matrix_a, m0 + group + 8, M, k + 8, K);
        const unsigned b0 = pair_at(matrix_b, n0 + group, N, k, K);
        const unsigned b1 = pair_at(matrix_b, n0 + group, N, k + 8, K);
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                     : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
                     : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
    }
    for (int e = 0; e < 4; ++e) {
        const int m = m0 + group + e / 2 * 8, n = n0 + 2 * member + e % 2;
        if (m < M && n < N) out[(size_t(blockIdx.z) * M + m) * N + n] = __float2half(sum[e] * alpha);
    }
}
