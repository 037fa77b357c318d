// memcpy and memset are built in. nvcc has memmove for the host alone; a template, so that a candidate's own goes first.
#pragma once
#include <stddef.h>
template <typename = void> __device__ inline void* memmove(void* to, const void* from, size_t bytes) {
    char* target = static_cast<char*>(to);
    const char* source = static_cast<const char*>(from);
    if (target < source)
        for (size_t i = 0; i < bytes; ++i) target[i] = source[i];
    else
        for (size_t i = bytes; i > 0; --i) target[i - 1] = source[i - 1];
    return to;
}
