// threadIdx and its like, block barriers, fences.
#pragma once
// A component is a read of a special register, so that nothing is stored; a copy of the object reads the same.
#define EV_INDEX(NAME, REGISTER, TYPE)                                                                     \
    struct __ev_##NAME {                                                                                   \
        __declspec(property(get = get_x)) unsigned int x;                                                  \
        __declspec(property(get = get_y)) unsigned int y;                                                  \
        __declspec(property(get = get_z)) unsigned int z;                                                  \
        EV_METHOD static unsigned int get_x() { return __nvvm_read_ptx_sreg_##REGISTER##_x(); } \
        EV_METHOD static unsigned int get_y() { return __nvvm_read_ptx_sreg_##REGISTER##_y(); } \
        EV_METHOD static unsigned int get_z() { return __nvvm_read_ptx_sreg_##REGISTER##_z(); } \
        EV_METHOD operator dim3() const { return dim3(get_x(), get_y(), get_z()); }             \
        EV_METHOD operator uint3() const { return uint3{get_x(), get_y(), get_z()}; }           \
    };                                                                                                     \
    static const __device__ __ev_##NAME NAME = {};
EV_INDEX(threadIdx, tid, uint3)
EV_INDEX(blockIdx, ctaid, uint3)
EV_INDEX(blockDim, ntid, dim3)
EV_INDEX(gridDim, nctaid, dim3)
#undef EV_INDEX
static constexpr int warpSize = 32;

// __syncthreads() is clang's own.
EV int __syncthreads_count(int predicate) { return __nvvm_bar0_popc(predicate); }
EV int __syncthreads_and(int predicate) { return __nvvm_bar0_and(predicate); }
EV int __syncthreads_or(int predicate) { return __nvvm_bar0_or(predicate); }
EV void __syncwarp(unsigned int mask = 0xffffffffu) { __nvvm_bar_warp_sync(mask); }

EV void __threadfence_block() { __nvvm_membar_cta(); }
EV void __threadfence() { __nvvm_membar_gl(); }
EV void __threadfence_system() { __nvvm_membar_sys(); }
// Launches run one after the other: an earlier one has always ended.
EV void cudaGridDependencySynchronize() {}
EV void cudaTriggerProgrammaticLaunchCompletion() {}

EV long long clock64() { return __nvvm_read_ptx_sreg_clock64(); }
EV clock_t clock() { return __nvvm_read_ptx_sreg_clock(); }
EV void __nanosleep(unsigned int ns) { asm volatile("nanosleep.u32 %0;" ::"r"(ns)); }
EV void __trap() { asm volatile("trap;"); }
EV void __brkpt() { asm volatile("brkpt;"); }
EV void __prof_trigger(int) {}
EV unsigned int __ev_laneid() { return __nvvm_read_ptx_sreg_laneid(); }
