// Put before every candidate: nvcc brings these names through the headers that it includes by itself.
#pragma once
#include <algorithm>
#include <cmath>
#include <float.h>
#include <limits.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#if __CUDA_ARCH__ >= 900
// Those of <cuda_device_runtime_api.h>, which nvcc includes and which declares functions of the driver.
static inline __device__ void cudaGridDependencySynchronize() { asm volatile("griddepcontrol.wait;" ::: "memory"); }
static inline __device__ void cudaTriggerProgrammaticLaunchCompletion() {
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
}
#endif
// Every class with a virtual destructor refers to it, also where nothing comes from `new`; the compiler's own calls
// free, which is refused.
__device__ void operator delete(void*) noexcept { __trap(); }
__device__ void operator delete(void*, size_t) noexcept { __trap(); }
