#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
namespace cg = cooperative_groups;

// Groups of every kind made from others, for a block of 64 threads.
__device__ int sum_of(cg::thread_group group, int* temporary, int value) {
    const int rank = group.thread_rank();
    for (int i = group.size() / 2; i > 0; i /= 2) {
        temporary[rank] = value;
        group.sync();
        if (rank < i) value += temporary[rank + i];
        group.sync();
    }
    return value;
}

__global__ void groups(int* out) {
    __shared__ int temporary[64];
    const int r = threadIdx.x;
    int* o = out + r * 12;
    const auto block = cg::this_thread_block();
    const auto warp = cg::tiled_partition<32>(block);
    const auto labelled = cg::labeled_partition(warp, r % 3);
    o[0] = labelled.size();
    o[1] = labelled.thread_rank();
    o[2] = labelled.meta_group_size();
    o[3] = cg::binary_partition(warp, r % 4 == 1).size();
    o[4] = o[5] = o[6] = o[7] = 0;
    if (r % 2) {
        const auto four = cg::tiled_partition<4>(cg::coalesced_threads());
        o[4] = four.size();
        o[5] = four.thread_rank();
        o[6] = four.meta_group_rank();
        o[7] = cg::reduce(four, r, cg::plus<int>());
    }
    const cg::thread_block_tile<4> four = cg::tiled_partition<4>(cg::tiled_partition<16>(block));
    o[8] = four.meta_group_rank();
    o[9] = four.meta_group_size();
    o[10] = sum_of(block, temporary, r);
    o[11] = sum_of(cg::tiled_partition(block, 8), temporary + r / 8 * 8, r);
}
