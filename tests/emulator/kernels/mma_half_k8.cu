#include <cuda_fp16.h>

__device__ __forceinline__ unsigned two(const __half* from, int row, int col, int rows, int cols) {
    __half2 pair = __float2half2_rn(0.0f);
    if (row < rows && col < cols) pair.x = from[row * cols + col];
    if (row < rows && col + 1 < cols) pair.y = from[row * cols + col + 1];
    return *reinterpret_cast<unsigned*>(&pair);
}

// m16n8k8 with guards on every side: fragments are filled element by element.
__global__ void mma_half_k8(const __half* A, const __half* B, float* C, int M, int N, int K) {
    const int lane = threadIdx.x, g = lane / 4, t = lane % 4, row = blockIdx.y * 16, col = blockIdx.x * 8;
    float c[4] = {};
    for (int k = 0; k < K; k += 8) {
        const unsigned a0 = two(A, row + g, k + 2 * t, M, K), a1 = two(A, row + g + 8, k + 2 * t, M, K);
        const unsigned b = two(B, col + g, k + 2 * t, N, K);
        asm("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%7,%8,%9,%10};"
            : "=f"(c[0]), "=f"(c[1]), "=f"(c[2]), "=f"(c[3])
            : "r"(a0), "r"(a1), "r"(b), "f"(c[0]), "f"(c[1]), "f"(c[2]), "f"(c[3]));
    }
    for (int i = 0; i < 4; ++i) {
        const int r = row + g + i / 2 * 8, n = col + 2 * t + i % 2;
        if (r < M && n < N) C[r * N + n] = c[i];
    }
}
