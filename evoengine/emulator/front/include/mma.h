// nvcuda::wmma: matrices distributed over a warp. Which element of a matrix a thread's x[i] is, is unspecified; here it is
// what the wmma instructions of PTX do, with all of a lane's registers in their order.
#pragma once
#include <cuda_bf16.h>
#include <cuda_fp16.h>
namespace nvcuda {
namespace wmma {
struct row_major {};
struct col_major {};
struct matrix_a {};
struct matrix_b {};
struct accumulator {};
enum layout_t { mem_row_major, mem_col_major };
namespace precision {
struct tf32 {};
struct u4 {};
struct s4 {};
struct b1 {};
}  // namespace precision

// What a fragment stores, how many of them, and in how many 32-bit registers.
template <typename T, int COUNT, int REGISTERS = COUNT * sizeof(T) / 4> struct __ev_storage {
    typedef T element_type;
    typedef T storage_element_type;
    static constexpr int num_elements = COUNT;
    static constexpr int num_storage_elements = COUNT;
    T x[COUNT];
    EV_METHOD void __put(const int (&registers)[REGISTERS]) { __builtin_memcpy(x, registers, sizeof(x)); }
    EV_METHOD void __get(int (&registers)[REGISTERS]) const { __builtin_memcpy(registers, x, sizeof(x)); }
    EV_METHOD void __put(const float (&registers)[REGISTERS]) { __builtin_memcpy(x, registers, sizeof(x)); }
    EV_METHOD void __get(float (&registers)[REGISTERS]) const { __builtin_memcpy(registers, x, sizeof(x)); }
};
template <typename Use, int __m, int __n, int __k, typename T, typename Layout = void> class fragment;
template <typename Layout> constexpr int __ev_column = __is_same(Layout, col_major);

template <typename F, typename V> EV_STATIC void fill_fragment(F& f, const V& value) {
    for (int i = 0; i < f.num_elements; ++i) f.x[i] = value;
}

// A and B: the layout is part of the type.
#define EV_OPERAND(USE, M, N, K, T, STORED, COUNT, LOAD, POINTER) \
    template <typename Layout> class fragment<USE, M, N, K, T, Layout> : public __ev_storage<STORED, COUNT> {}; \
    template <typename Layout> \
    EV_STATIC void load_matrix_sync(fragment<USE, M, N, K, T, Layout>& f, const STORED* p, unsigned int ldm) { \
        int registers[COUNT * sizeof(STORED) / 4]; \
        LOAD(registers, (const POINTER*)p, ldm, __ev_column<Layout>); \
        f.__put(registers); \
    }
// Accumulators: the layout is said when they are loaded and stored.
#define EV_ACCUMULATOR(M, N, K, T, COUNT, WORD, LOAD, STORE) \
    template <> class fragment<accumulator, M, N, K, T, void> : public __ev_storage<T, COUNT> {}; \
    EV void load_matrix_sync(fragment<accumulator, M, N, K, T>& f, const T* p, unsigned int ldm, layout_t layout) { \
        WORD registers[COUNT * sizeof(T) / 4]; \
        if (layout == mem_row_major) LOAD(registers, (const WORD*)p, ldm, 0); \
        else LOAD(registers, (const WORD*)p, ldm, 1); \
        f.__put(registers); \
    } \
    EV void store_matrix_sync(T* p, const fragment<accumulator, M, N, K, T>& f, unsigned int ldm, layout_t layout) { \
        WORD registers[COUNT * sizeof(T) / 4]; \
        f.__get(registers); \
        if (layout == mem_row_major) STORE((WORD*)p, registers, ldm, 0); \
        else STORE((WORD*)p, registers, ldm, 1); \
    }
// d = a * b + c. The instruction's number of the two layouts is 2 * (A by columns) + (B by columns).
#define EV_PRODUCT(M, N, K, T, D, C, WORD_D, WORD_C, MMA) \
    template <typename LA, typename LB> \
    EV_STATIC void mma_sync(fragment<accumulator, M, N, K, D>& d, const fragment<matrix_a, M, N, K, T, LA>& a, \
                            const fragment<matrix_b, M, N, K, T, LB>& b, const fragment<accumulator, M, N, K, C>& c) { \
        int ra[sizeof(a.x) / 4], rb[sizeof(b.x) / 4]; \
        WORD_C rc[sizeof(c.x) / 4]; \
        WORD_D rd[sizeof(d.x) / 4]; \
        a.__get(ra); \
        b.__get(rb); \
        c.__get(rc); \
        MMA(rd, ra, rb, rc, 2 * __ev_column<LA> + __ev_column<LB>, 0); \
        d.__put(rd); \
    }
#define EV_HALF_SHAPE(M, N, K) \
    EV_OPERAND(matrix_a, M, N, K, __half, __half, 16, __hmma_m##M##n##N##k##K##_ld_a, int) \
    EV_OPERAND(matrix_b, M, N, K, __half, __half, 16, __hmma_m##M##n##N##k##K##_ld_b, int) \
    EV_ACCUMULATOR(M, N, K, float, 8, float, __hmma_m##M##n##N##k##K##_ld_c_f32, __hmma_m##M##n##N##k##K##_st_c_f32) \
    EV_ACCUMULATOR(M, N, K, __half, 8, int, __hmma_m##M##n##N##k##K##_ld_c_f16, __hmma_m##M##n##N##k##K##_st_c_f16) \
    EV_PRODUCT(M, N, K, __half, float, float, float, float, __hmma_m##M##n##N##k##K##_mma_f32f32) \
    EV_PRODUCT(M, N, K, __half, float, __half, float, int, __hmma_m##M##n##N##k##K##_mma_f32f16) \
    EV_PRODUCT(M, N, K, __half, __half, float, int, float, __hmma_m##M##n##N##k##K##_mma_f16f32) \
    EV_PRODUCT(M, N, K, __half, __half, __half, int, int, __hmma_m##M##n##N##k##K##_mma_f16f16)
EV_HALF_SHAPE(16, 16, 16)
EV_HALF_SHAPE(32, 8, 16)
EV_HALF_SHAPE(8, 32, 16)
#undef EV_HALF_SHAPE
#define EV_BYTE_SHAPE(M, N, K, T, NAME, A, B) \
    EV_OPERAND(matrix_a, M, N, K, T, T, A, __imma_m##M##n##N##k##K##_ld_a_##NAME, int) \
    EV_OPERAND(matrix_b, M, N, K, T, T, B, __imma_m##M##n##N##k##K##_ld_b_##NAME, int) \
    EV_PRODUCT(M, N, K, T, int, int, int, int, __imma_m##M##n##N##k##K##_mma_##NAME)
EV_ACCUMULATOR(16, 16, 16, int, 8, int, __imma_m16n16k16_ld_c, __imma_m16n16k16_st_c_i32)
EV_ACCUMULATOR(32, 8, 16, int, 8, int, __imma_m32n8k16_ld_c, __imma_m32n8k16_st_c_i32)
EV_ACCUMULATOR(8, 32, 16, int, 8, int, __imma_m8n32k16_ld_c, __imma_m8n32k16_st_c_i32)
EV_BYTE_SHAPE(16, 16, 16, signed char, s8, 8, 8)
EV_BYTE_SHAPE(32, 8, 16, signed char, s8, 16, 4)
EV_BYTE_SHAPE(8, 32, 16, signed char, s8, 4, 16)
EV_BYTE_SHAPE(16, 16, 16, unsigned char, u8, 8, 8)
EV_BYTE_SHAPE(32, 8, 16, unsigned char, u8, 16, 4)
EV_BYTE_SHAPE(8, 32, 16, unsigned char, u8, 4, 16)
#undef EV_BYTE_SHAPE
#if __CUDA_ARCH__ >= 800
#define EV_BFLOAT_SHAPE(M, N, K, A, B) \
    EV_OPERAND(matrix_a, M, N, K, __nv_bfloat16, __nv_bfloat16, A, __mma_bf16_m##M##n##N##k##K##_ld_a, int) \
    EV_OPERAND(matrix_b, M, N, K, __nv_bfloat16, __nv_bfloat16, B, __mma_bf16_m##M##n##N##k##K##_ld_b, int) \
    EV_PRODUCT(M, N, K, __nv_bfloat16, float, float, float, float, __mma_bf16_m##M##n##N##k##K##_mma_f32)
EV_BFLOAT_SHAPE(16, 16, 16, 8, 8)
EV_BFLOAT_SHAPE(32, 8, 16, 16, 4)
EV_BFLOAT_SHAPE(8, 32, 16, 4, 16)
#undef EV_BFLOAT_SHAPE
EV_OPERAND(matrix_a, 16, 16, 8, precision::tf32, float, 4, __mma_tf32_m16n16k8_ld_a, int)
EV_OPERAND(matrix_b, 16, 16, 8, precision::tf32, float, 4, __mma_tf32_m16n16k8_ld_b, int)
EV_ACCUMULATOR(16, 16, 8, float, 8, float, __mma_tf32_m16n16k8_ld_c, __mma_m16n16k8_st_c_f32)
EV_PRODUCT(16, 16, 8, precision::tf32, float, float, float, float, __mma_tf32_m16n16k8_mma_f32)
EV float __float_to_tf32(float x) {
    unsigned int d;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(d) : "f"(x));
    return __uint_as_float(d);
}
#endif
#undef EV_OPERAND
#undef EV_ACCUMULATOR
#undef EV_PRODUCT
}  // namespace wmma
}  // namespace nvcuda
