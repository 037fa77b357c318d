// Inline PTX as people write it: single instructions, predicates in a scope, pairs packed in 64 bits, special registers, cache hints.
__device__ __forceinline__ float ex2(float x) {
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

__device__ __forceinline__ unsigned int majority(unsigned int a, unsigned int b, unsigned int c) {
    unsigned int r;
    asm("lop3.b32 %0, %1, %2, %3, 0xe8;" : "=r"(r) : "r"(a), "r"(b), "r"(c));
    return r;
}

__device__ __forceinline__ int clamp_by_predicates(int x, int low, int high) {
    int r;
    asm("{\n\t"
        ".reg .pred p, q;\n\t"
        ".reg .s32 t;\n\t"
        "setp.lt.s32 p, %1, %2;\n\t"
        "setp.gt.s32 q, %1, %3;\n\t"
        "selp.s32 t, %2, %1, p;\n\t"
        "@q mov.s32 t, %3;\n\t"
        "mov.s32 %0, t;\n\t"
        "}"
        : "=r"(r)
        : "r"(x), "r"(low), "r"(high));
    return r;
}

extern "C" __global__ void inline_ptx(const unsigned int* a, const unsigned int* b, const float* f, unsigned int* out, float* fout,
                                      unsigned long long* wide, int n) {
    unsigned int i;
    asm("mad.lo.u32 %0, %1, %2, %3;" : "=r"(i) : "r"(blockIdx.x), "r"(blockDim.x), "r"(threadIdx.x));
    if (i >= n) return;
    unsigned int x, y = b[i];
    asm volatile("ld.global.nc.u32 %0, [%1];" : "=r"(x) : "l"(a + i));

    unsigned int low, high, product_low, product_high, shifted, permuted;
    asm("{ .reg .u64 w; mul.wide.u32 w, %2, %3; mov.b64 {%0, %1}, w; }" : "=r"(product_low), "=r"(product_high) : "r"(x), "r"(y));
    asm("add.cc.u32 %0, %2, %3;\n\taddc.u32 %1, %4, 0;" : "=r"(low), "=r"(high) : "r"(x), "r"(y), "r"(product_high));
    asm("shf.l.wrap.b32 %0, %1, %2, %3;" : "=r"(shifted) : "r"(x), "r"(y), "r"(i));
    asm("prmt.b32 %0, %1, %2, 0x3715;" : "=r"(permuted) : "r"(x), "r"(y));
    out[6 * i + 0] = low;
    out[6 * i + 1] = high;
    out[6 * i + 2] = majority(x, y, product_low);
    out[6 * i + 3] = shifted;
    out[6 * i + 4] = permuted;
    out[6 * i + 5] = clamp_by_predicates((int)x, -1000000000, 1000000000);

    float v = f[i], fused, least;
    asm("fma.rn.f32 %0, %1, %1, %2;" : "=f"(fused) : "f"(v), "f"(1.0f));
    asm("min.f32 %0, %1, 0f3F800000;" : "=f"(least) : "f"(v));
    fout[3 * i + 0] = fused;
    fout[3 * i + 1] = least;
    fout[3 * i + 2] = ex2(v);
    unsigned int packed;
    asm("mov.b32 %0, {%1, %2};" : "=r"(packed) : "h"((unsigned short)x), "h"((unsigned short)y));
    asm volatile("st.global.cg.u64 [%0], %1;" ::"l"(wide + i), "l"((unsigned long long)packed << 20) : "memory");
}
