// printf and assert: calls that the emulator handles (vprintf and __assertfail are CUDA's own system calls).
#pragma once
extern "C" __device__ int vprintf(const char* format, void* arguments);
extern "C" __device__ int printf(const char* format, ...);  // clang packs the arguments and calls vprintf
extern "C" __device__ __attribute__((noreturn)) void __assertfail(
    const char* message, const char* file, unsigned int line, const char* function, size_t char_bytes);
