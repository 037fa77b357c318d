#include <cooperative_groups.h>
namespace cg = cooperative_groups;

// The block as a group: ranks in three dimensions, sync between two passes over shared memory.
__global__ void groups_block(const float* in, float* out, unsigned* facts) {
    extern __shared__ float buffer[];
    cg::thread_block block = cg::this_thread_block();
    const unsigned rank = block.thread_rank(), size = block.size();
    const unsigned first = (blockIdx.y * gridDim.x + blockIdx.x) * size;
    buffer[rank] = in[first + rank];
    block.sync();
    out[first + rank] = buffer[size - 1 - rank];
    cg::sync(block);
    buffer[rank] = float(block.thread_index().z);
    block.sync();
    facts[first + rank] = rank * 1000 + unsigned(buffer[(rank + 1) % size]) * 100 + block.group_index().y * 10 + block.group_dim().y;
}
