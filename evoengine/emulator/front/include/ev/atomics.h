// Atomic functions: relaxed, in the scope of the device, the block (_block) or the system (_system).
#pragma once
#define EV_ATOMIC_OP(NAME, OP, T, SUFFIX, SCOPE) \
    EV T NAME##SUFFIX(T* p, T x) { return __scoped_atomic_fetch_##OP(p, x, __ATOMIC_RELAXED, SCOPE); }
#define EV_ATOMIC_SWAP(T, WORD, SUFFIX, SCOPE)                                                                             \
    EV T atomicExch##SUFFIX(T* p, T x) {                                                                                   \
        return __builtin_bit_cast(T, __scoped_atomic_exchange_n((WORD*)p, __builtin_bit_cast(WORD, x), __ATOMIC_RELAXED, SCOPE)); \
    }
#define EV_ATOMIC_CAS(T, SUFFIX, SCOPE)                                                                                    \
    EV T atomicCAS##SUFFIX(T* p, T compare, T x) {                                                                         \
        __scoped_atomic_compare_exchange_n(p, &compare, x, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED, SCOPE);              \
        return compare;                                                                                                    \
    }
#define EV_ATOMIC_BITS(T, SUFFIX, SCOPE)                                                                                   \
    EV_ATOMIC_OP(atomicMin, min, T, SUFFIX, SCOPE) EV_ATOMIC_OP(atomicMax, max, T, SUFFIX, SCOPE)                          \
    EV_ATOMIC_OP(atomicAnd, and, T, SUFFIX, SCOPE) EV_ATOMIC_OP(atomicOr, or, T, SUFFIX, SCOPE)                            \
    EV_ATOMIC_OP(atomicXor, xor, T, SUFFIX, SCOPE)
#define EV_ATOMIC_WORD(T, SUFFIX, SCOPE) \
    EV_ATOMIC_OP(atomicAdd, add, T, SUFFIX, SCOPE) EV_ATOMIC_SWAP(T, T, SUFFIX, SCOPE) EV_ATOMIC_CAS(T, SUFFIX, SCOPE)
// Exactly the types that CUDA has: what compiles here must compile there.
#define EV_ATOMICS(SUFFIX, SCOPE, PTX_SCOPE)                                                                               \
    EV_ATOMIC_BITS(int, SUFFIX, SCOPE) EV_ATOMIC_BITS(unsigned int, SUFFIX, SCOPE)                                         \
    EV_ATOMIC_BITS(long long, SUFFIX, SCOPE) EV_ATOMIC_BITS(unsigned long long, SUFFIX, SCOPE)                             \
    EV_ATOMIC_WORD(int, SUFFIX, SCOPE) EV_ATOMIC_WORD(unsigned int, SUFFIX, SCOPE)                                         \
    EV_ATOMIC_WORD(unsigned long long, SUFFIX, SCOPE)                                                                      \
    EV_ATOMIC_OP(atomicSub, sub, int, SUFFIX, SCOPE) EV_ATOMIC_OP(atomicSub, sub, unsigned int, SUFFIX, SCOPE)             \
    EV_ATOMIC_OP(atomicAdd, add, float, SUFFIX, SCOPE) EV_ATOMIC_OP(atomicAdd, add, double, SUFFIX, SCOPE)                 \
    EV_ATOMIC_SWAP(float, unsigned int, SUFFIX, SCOPE)                                                                     \
    EV unsigned int atomicInc##SUFFIX(unsigned int* p, unsigned int x) { return __nvvm_atom_##PTX_SCOPE##inc_gen_ui(p, x); } \
    EV unsigned int atomicDec##SUFFIX(unsigned int* p, unsigned int x) { return __nvvm_atom_##PTX_SCOPE##dec_gen_ui(p, x); }
EV_ATOMICS(, __MEMORY_SCOPE_DEVICE, )
EV_ATOMICS(_block, __MEMORY_SCOPE_WRKGRP, cta_)
EV_ATOMICS(_system, __MEMORY_SCOPE_SYSTEM, sys_)
#undef EV_ATOMICS
EV_ATOMIC_CAS(unsigned short, , __MEMORY_SCOPE_DEVICE)
