// Loads and stores with a cache hint, address spaces, memcpy.
#pragma once
typedef unsigned int __ev_uint2 __attribute__((ext_vector_type(2)));
typedef unsigned int __ev_uint4 __attribute__((ext_vector_type(4)));

template <typename T> EV_STATIC T __ldg(const T* p) {
    static_assert(sizeof(T) == 1 || sizeof(T) == 2 || sizeof(T) == 4 || sizeof(T) == 8 || sizeof(T) == 16, "__ldg: 1, 2, 4, 8 or 16 bytes");
    if constexpr (sizeof(T) == 1) return __builtin_bit_cast(T, __nvvm_ldg_uc((const unsigned char*)p));
    else if constexpr (sizeof(T) == 2) return __builtin_bit_cast(T, __nvvm_ldg_us((const unsigned short*)p));
    else if constexpr (sizeof(T) == 4) return __builtin_bit_cast(T, __nvvm_ldg_ui((const unsigned int*)p));
    else if constexpr (sizeof(T) == 8) return __builtin_bit_cast(T, __nvvm_ldg_ull((const unsigned long long*)p));
    else return __builtin_bit_cast(T, __nvvm_ldg_ui4((const __ev_uint4*)p));
}

// As CUDA has it, these take pointers to global memory only.
#define EV_LOAD(NAME, HOW, VOLATILE, ...)                                                                                  \
    template <typename T> EV_STATIC T NAME(const T* p) {                                                                  \
        static_assert(sizeof(T) == 1 || sizeof(T) == 2 || sizeof(T) == 4 || sizeof(T) == 8 || sizeof(T) == 16, "1, 2, 4, 8 or 16 bytes"); \
        if constexpr (sizeof(T) == 1) {                                                                                   \
            unsigned short v;                                                                                             \
            asm VOLATILE("ld.global." HOW ".u8 %0, [%1];" : "=h"(v) : "l"(p) __VA_ARGS__);                                \
            return __builtin_bit_cast(T, (unsigned char)v);                                                               \
        } else if constexpr (sizeof(T) == 2) {                                                                            \
            unsigned short v;                                                                                             \
            asm VOLATILE("ld.global." HOW ".u16 %0, [%1];" : "=h"(v) : "l"(p) __VA_ARGS__);                               \
            return __builtin_bit_cast(T, v);                                                                              \
        } else if constexpr (sizeof(T) == 4) {                                                                            \
            unsigned int v;                                                                                               \
            asm VOLATILE("ld.global." HOW ".u32 %0, [%1];" : "=r"(v) : "l"(p) __VA_ARGS__);                               \
            return __builtin_bit_cast(T, v);                                                                              \
        } else if constexpr (sizeof(T) == 8) {                                                                            \
            __ev_uint2 v;                                                                                                 \
            asm VOLATILE("ld.global." HOW ".v2.u32 {%0, %1}, [%2];" : "=r"(v.x), "=r"(v.y) : "l"(p) __VA_ARGS__);         \
            return __builtin_bit_cast(T, v);                                                                              \
        } else {                                                                                                          \
            __ev_uint4 v;                                                                                                 \
            asm VOLATILE("ld.global." HOW ".v4.u32 {%0, %1, %2, %3}, [%4];"                                               \
                         : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"(p) __VA_ARGS__);                              \
            return __builtin_bit_cast(T, v);                                                                              \
        }                                                                                                                 \
    }
EV_LOAD(__ldca, "ca", volatile, : "memory")
EV_LOAD(__ldcg, "cg", volatile, : "memory")
EV_LOAD(__ldcs, "cs", volatile, : "memory")
EV_LOAD(__ldlu, "lu", volatile, : "memory")
EV_LOAD(__ldcv, "cv", volatile, : "memory")
#undef EV_LOAD
#define EV_STORE(NAME, HOW)                                                                                                \
    template <typename T> EV_STATIC void NAME(T* p, T value) {                                                            \
        static_assert(sizeof(T) == 1 || sizeof(T) == 2 || sizeof(T) == 4 || sizeof(T) == 8 || sizeof(T) == 16, "1, 2, 4, 8 or 16 bytes"); \
        if constexpr (sizeof(T) == 1) {                                                                                   \
            asm volatile("st.global." HOW ".u8 [%0], %1;" ::"l"(p), "h"((unsigned short)__builtin_bit_cast(unsigned char, value)) : "memory"); \
        } else if constexpr (sizeof(T) == 2) {                                                                            \
            asm volatile("st.global." HOW ".u16 [%0], %1;" ::"l"(p), "h"(__builtin_bit_cast(unsigned short, value)) : "memory"); \
        } else if constexpr (sizeof(T) == 4) {                                                                            \
            asm volatile("st.global." HOW ".u32 [%0], %1;" ::"l"(p), "r"(__builtin_bit_cast(unsigned int, value)) : "memory"); \
        } else if constexpr (sizeof(T) == 8) {                                                                            \
            const __ev_uint2 v = __builtin_bit_cast(__ev_uint2, value);                                                   \
            asm volatile("st.global." HOW ".v2.u32 [%0], {%1, %2};" ::"l"(p), "r"(v.x), "r"(v.y) : "memory");             \
        } else {                                                                                                          \
            const __ev_uint4 v = __builtin_bit_cast(__ev_uint4, value);                                                   \
            asm volatile("st.global." HOW ".v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(p), "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w) : "memory"); \
        }                                                                                                                 \
    }
EV_STORE(__stwb, "wb")
EV_STORE(__stcg, "cg")
EV_STORE(__stcs, "cs")
EV_STORE(__stwt, "wt")
#undef EV_STORE

#define EV_SPACE(NAME, N)                                                                                                  \
    EV size_t __cvta_generic_to_##NAME(const void* p) { return (size_t)(const __attribute__((address_space(N))) void*)p; } \
    EV void* __cvta_##NAME##_to_generic(size_t raw) { return (void*)(__attribute__((address_space(N))) void*)raw; }
EV_SPACE(global, 1)
EV_SPACE(shared, 3)
EV_SPACE(constant, 4)
EV_SPACE(local, 5)
#undef EV_SPACE
EV unsigned int __isGlobal(const void* p) { return __nvvm_isspacep_global(p); }
EV unsigned int __isShared(const void* p) { return __nvvm_isspacep_shared(p); }
EV unsigned int __isConstant(const void* p) { return __nvvm_isspacep_const(p); }
EV unsigned int __isLocal(const void* p) { return __nvvm_isspacep_local(p); }

// As nvcc has it: nothing is known of the alignment, so that a copy of a few bytes is loads and stores of single bytes unless the compiler
// knows both objects. A size that it does not know becomes a loop.
EV void* memcpy(void* to, const void* from, size_t bytes) {
    if (!__builtin_constant_p(bytes) || bytes % 4 || bytes > 128) return __builtin_memcpy(to, from, bytes);
#pragma unroll
    for (size_t i = 0; i < bytes; i += 4) __builtin_memcpy((char*)to + i, (const char*)from + i, 4);
    return to;
}
EV void* memset(void* to, int byte, size_t bytes) { return __builtin_memset(to, byte, bytes); }
// nvcc has this one for the host alone. A template, so that a kernel's own goes first.
template <typename = void> EV_STATIC void* memmove(void* to, const void* from, size_t bytes) { return __builtin_memmove(to, from, bytes); }
namespace std {
using ::memcpy;
using ::memmove;
using ::memset;
}
