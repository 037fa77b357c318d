// m16n8k32 on fp8 codes, each four of which share a register. FIVES: e5m2 times e4m3, else both are e4m3.
template <bool FIVES>
__global__ void mma_fp8(const unsigned char* A, const unsigned char* B, float* C, int N, int K) {
    const int lane = threadIdx.x, g = lane / 4, t = lane % 4, row = blockIdx.y * 16, col = blockIdx.x * 8;
    auto word = [&](const unsigned char* from, int r, int c) { return *reinterpret_cast<const unsigned*>(&from[r * K + c]); };
    float c[4] = {};
    for (int k = 0; k < K; k += 32) {
        const unsigned a0 = word(A, row + g, k + 4 * t), a1 = word(A, row + g + 8, k + 4 * t);
        const unsigned a2 = word(A, row + g, k + 4 * t + 16), a3 = word(A, row + g + 8, k + 4 * t + 16);
        const unsigned b0 = word(B, col + g, k + 4 * t), b1 = word(B, col + g, k + 4 * t + 16);
        if constexpr (FIVES)
            asm volatile("mma.sync.aligned.m16n8k32.row.col.f32.e5m2.e4m3.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                         : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
        else
            asm volatile("mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                         : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
    }
    for (int i = 0; i < 4; ++i) C[(row + g + i / 2 * 8) * N + col + 2 * t + i % 2] = c[i];
}
