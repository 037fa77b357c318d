// m16n8k32 on signed bytes and m16n8k16 for the rest of K; sums in int are exact.
__global__ void mma_int8(const signed char* A, const signed char* B, int* C, int N, int K) {
    const int lane = threadIdx.x, g = lane / 4, t = lane % 4, row = blockIdx.y * 16, col = blockIdx.x * 8;
    auto word = [&](const signed char* from, int r, int c) { return *reinterpret_cast<const unsigned*>(&from[r * K + c]); };
    int c[4] = {};
    int k = 0;
    for (; k + 32 <= K; k += 32)
        asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                     : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
                     : "r"(word(A, row + g, k + 4 * t)), "r"(word(A, row + g + 8, k + 4 * t)), "r"(word(A, row + g, k + 4 * t + 16)),
                       "r"(word(A, row + g + 8, k + 4 * t + 16)), "r"(word(B, col + g, k + 4 * t)), "r"(word(B, col + g, k + 4 * t + 16)));
    if (k < K)
        asm volatile("mma.sync.aligned.m16n8k16.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
                     : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
                     : "r"(word(A, row + g, k + 4 * t)), "r"(word(A, row + g + 8, k + 4 * t)), "r"(word(B, col + g, k + 4 * t)));
    for (int i = 0; i < 4; ++i) C[(row + g + i / 2 * 8) * N + col + 2 * t + i % 2] = c[i];
}
