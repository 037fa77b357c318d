#include <cooperative_groups.h>
namespace cg = cooperative_groups;

// The threads that found something reserve their places with one atomic a warp.
__device__ int reserve(int* counter) {
    cg::coalesced_group active = cg::coalesced_threads();
    int base = 0;
    if (active.thread_rank() == 0) base = atomicAdd(counter, int(active.size()));
    return active.shfl(base, 0) + active.thread_rank();
}

__global__ void groups_coalesced(const int* in, int* kept, int* counter, int* sizes, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    sizes[i] = 0;
    if (in[i] % 3 == 0) {
        sizes[i] = cg::coalesced_threads().size();
        kept[reserve(counter)] = in[i];
    }
}
