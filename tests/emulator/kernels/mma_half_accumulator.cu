#include <cuda_fp16.h>

// m16n8k16 with sums in half: two packed registers of results, which start with the bias of their column.
__global__ void mma_half_accumulator(const __half* A, const __half* B, const __half* bias, __half* C, int N, int K) {
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, g = lane / 4, t = lane % 4;
    const int row = blockIdx.y * 16, col = (blockIdx.x * (blockDim.x / 32) + warp) * 8;
    const unsigned* a = reinterpret_cast<const unsigned*>(A);
    const unsigned* b = reinterpret_cast<const unsigned*>(B);
    unsigned c0 = *reinterpret_cast<const unsigned*>(&bias[col + 2 * t]), c1 = c0;
    for (int k = 0; k < K; k += 16) {
        const int top = ((row + g) * K + k) / 2 + t, bottom = top + 8 * K / 2, right = ((col + g) * K + k) / 2 + t;
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%0,%1}, {%2,%3,%4,%5}, {%6,%7}, {%0,%1};"
                     : "+r"(c0), "+r"(c1)
                     : "r"(a[top]), "r"(a[bottom]), "r"(a[top + 4]), "r"(a[bottom + 4]), "r"(b[right]), "r"(b[right + 4]));
    }
    *reinterpret_cast<unsigned*>(&C[(row + g) * N + col + 2 * t]) = c0;
    *reinterpret_cast<unsigned*>(&C[(row + g + 8) * N + col + 2 * t]) = c1;
}
