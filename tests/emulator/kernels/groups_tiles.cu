#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
namespace cg = cooperative_groups;

// Tiles of 32 and of 8 threads: sums, shuffles, votes.
__global__ void groups_tiles(const int* in, int* sums, int* moved, unsigned* votes) {
    cg::thread_block block = cg::this_thread_block();
    cg::thread_block_tile<32> warp = cg::tiled_partition<32>(block);
    cg::thread_block_tile<8> eight = cg::tiled_partition<8>(warp);
    const int i = blockIdx.x * blockDim.x + threadIdx.x, x = in[i];

    const int of_warp = cg::reduce(warp, x, cg::plus<int>());
    const int of_eight = cg::reduce(eight, x, cg::greater<int>());
    int by_hand = x;
    for (int offset = eight.size() / 2; offset > 0; offset /= 2) by_hand += eight.shfl_down(by_hand, offset);
    sums[3 * i] = of_warp;
    sums[3 * i + 1] = of_eight;
    sums[3 * i + 2] = eight.shfl(by_hand, 0);

    moved[3 * i] = eight.shfl_xor(x, 3);
    moved[3 * i + 1] = warp.shfl_up(x, 5);    // the first five keep their own
    moved[3 * i + 2] = eight.meta_group_rank() * 100 + eight.thread_rank();

    votes[3 * i] = eight.ballot(x > 0);
    votes[3 * i + 1] = warp.ballot(x > 0);
    votes[3 * i + 2] = unsigned(eight.any(x > 80)) | unsigned(eight.all(x > -80)) << 1;
    warp.sync();
}
