#include <cuda_bf16.h>

// m16n8k16 and m16n8k8 on bfloat16: K in steps of 16, and a last one of 8.
__global__ void mma_bfloat(const __nv_bfloat16* A, const __nv_bfloat16* B, float* C, int N, int K) {
    const int lane = threadIdx.x, g = lane / 4, t = lane % 4, row = blockIdx.y * 16, col = blockIdx.x * 8;
    auto word = [&](const __nv_bfloat16* from, int r, int c) { return *reinterpret_cast<const unsigned*>(&from[r * K + c]); };
    float c[4] = {};
    int k = 0;
    for (; k + 16 <= K; k += 16)
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                     : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                     : "r"(word(A, row + g, k + 2 * t)), "r"(word(A, row + g + 8, k + 2 * t)), "r"(word(A, row + g, k + 2 * t + 8)),
                       "r"(word(A, row + g + 8, k + 2 * t + 8)), "r"(word(B, col + g, k + 2 * t)), "r"(word(B, col + g, k + 2 * t + 8)));
    if (k < K)
        asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
                     : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                     : "r"(word(A, row + g, k + 2 * t)), "r"(word(A, row + g + 8, k + 2 * t)), "r"(word(B, col + g, k + 2 * t)));
    for (int i = 0; i < 4; ++i) C[(row + g + i / 2 * 8) * N + col + 2 * t + i % 2] = c[i];
}
