// Qualifiers and attributes.
#pragma once
#define __CUDACC__ 1
#define __CUDACC_RTC__ 1          // device code alone, as NVRTC takes it
#define __CUDACC_VER_MAJOR__ 12   // the interface followed here is that of CUDA 12
#define __CUDACC_VER_MINOR__ 8
#define __CUDACC_VER_BUILD__ 0
#define CUDART_VERSION 12080
#define CUDA_VERSION 12080
#define __EVOENGINE_EMULATOR__ 1

#define __host__ __attribute__((host))
#define __device__ __attribute__((device))
#define __global__ __attribute__((global))
#define __shared__ __attribute__((shared))
#define __constant__ __attribute__((constant))
#define __managed__ __attribute__((device))
#define __launch_bounds__(...) __attribute__((launch_bounds(__VA_ARGS__)))
#define __maxnreg__(n)
#define __cluster_dims__(...)
#define __grid_constant__ __attribute__((grid_constant))
#define __forceinline__ __inline__ __attribute__((always_inline))
#define __inline_hint__ __inline__
#define __align__(n) __attribute__((aligned(n)))
#define __builtin_align__(n) __attribute__((aligned(n)))
#define __device_builtin__
#define __nv_pure__ __attribute__((pure))
#define __CUDA_ALIGN__(n) __attribute__((aligned(n)))
#ifndef __restrict__
#define __restrict__ __restrict
#endif

// Of the headers' own functions. Overloads and inline copies of one another must not clash with a candidate's own.
#define EV static __inline__ __attribute__((always_inline, nodebug, device))  // nodebug: their instructions count for the line that calls
// Constant expressions may use these on either side.
#define EV_BOTH static __inline__ constexpr __attribute__((always_inline, nodebug, device, host))
#define EV_METHOD __attribute__((always_inline, nodebug, device))  // a member, or a template
#define EV_METHOD_BOTH __attribute__((always_inline, nodebug, device, host))
#define EV_STATIC static __inline__ EV_METHOD
