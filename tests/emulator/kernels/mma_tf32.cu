__device__ __forceinline__ unsigned to_tf32(float x) {
    unsigned bits;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(x));
    return bits;
}

// m16n8k8 and m16n8k4 on tf32: K in steps of 8, and a last one of 4.
__global__ void mma_tf32(const float* A, const float* B, float* C, int N, int K) {
    const int lane = threadIdx.x, g = lane / 4, t = lane % 4, row = blockIdx.y * 16, col = blockIdx.x * 8;
    auto a = [&](int r, int k) { return to_tf32(A[(row + r) * K + k]); };
    auto b = [&](int k) { return to_tf32(B[k * N + col + g]); };
    float c[4] = {};
    int k = 0;
    for (; k + 8 <= K; k += 8)
        asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                     : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                     : "r"(a(g, k + t)), "r"(a(g + 8, k + t)), "r"(a(g, k + t + 4)), "r"(a(g + 8, k + t + 4)), "r"(b(k + t)),
                       "r"(b(k + t + 4)));
    if (k < K)
        asm volatile("mma.sync.aligned.m16n8k4.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
                     : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                     : "r"(a(g, k + t)), "r"(a(g + 8, k + t)), "r"(b(k + t)));
    for (int i = 0; i < 4; ++i) C[(row + g + i / 2 * 8) * N + col + 2 * t + i % 2] = c[i];
}
