// cooperative_groups::memcpy_async from global to shared memory, and waiting for it.
#pragma once
#include <cooperative_groups.h>
#include <cuda_pipeline_primitives.h>
namespace cooperative_groups {
#if __CUDA_ARCH__ >= 800
// The group's threads share out pieces as large as the alignment of both ends and the size allow; a group of copies is committed.
template <typename Group, typename D, typename S>
EV_STATIC void memcpy_async(const Group& group, D* shared, const S* global, size_t bytes) {
    char* to = (char*)shared;
    const char* from = (const char*)global;
    const size_t bits = (size_t)to | (size_t)from | bytes;
    const unsigned int piece = bits % 16 == 0 ? 16 : bits % 8 == 0 ? 8 : bits % 4 == 0 ? 4 : 1;
    for (size_t i = (size_t)group.thread_rank() * piece; i < bytes; i += (size_t)group.size() * piece) {
        if (piece == 16) __pipeline_memcpy_async(to + i, from + i, 16);
        else if (piece == 8) __pipeline_memcpy_async(to + i, from + i, 8);
        else if (piece == 4) __pipeline_memcpy_async(to + i, from + i, 4);
        else to[i] = from[i];
    }
    __pipeline_commit();
}
// Waits until at most N of the latest groups of copies are on their way, in every thread of the group.
template <unsigned int N, typename Group> EV_STATIC void wait_prior(const Group& group) {
    __pipeline_wait_prior(N);
    group.sync();
}
template <typename Group> EV_STATIC void wait(const Group& group) { wait_prior<0>(group); }
#endif
}  // namespace cooperative_groups
