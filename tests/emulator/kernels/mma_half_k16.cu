#include <cuda_fp16.h>

// One warp a 16x8 tile of C, operands straight from global memory. Lane 4*g + t holds rows g and g + 8, columns 2t and 2t + 1.
__global__ void mma_half_k16(const __half* A, const __half* B, float* C, int M, int N, int K) {
    const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
    const int row = blockIdx.y * 16, col = blockIdx.x * 8;
    float c[4] = {0.f, 0.f, 0.f, 0.f};
    for (int k = 0; k < K; k += 16) {
        const unsigned a0 = *reinterpret_cast<const unsigned*>(&A[(row + g) * K + k + 2 * t]);
        const unsigned a1 = *reinterpret_cast<const unsigned*>(&A[(row + g + 8) * K + k + 2 * t]);
        const unsigned a2 = *reinterpret_cast<const unsigned*>(&A[(row + g) * K + k + 2 * t + 8]);
        const unsigned a3 = *reinterpret_cast<const unsigned*>(&A[(row + g + 8) * K + k + 2 * t + 8]);
        const unsigned b0 = *reinterpret_cast<const unsigned*>(&B[(col + g) * K + k + 2 * t]);    // B by columns
        const unsigned b1 = *reinterpret_cast<const unsigned*>(&B[(col + g) * K + k + 2 * t + 8]);
        asm volatile(
            "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
            "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};\n"
            : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
            : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
    }
    *reinterpret_cast<float2*>(&C[(row + g) * N + col + 2 * t]) = make_float2(c[0], c[1]);
    *reinterpret_cast<float2*>(&C[(row + g + 8) * N + col + 2 * t]) = make_float2(c[2], c[3]);
}
