#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
namespace cg = cooperative_groups;

// Running sums and maxima over a tile, and the sum of the tile's even numbers alone.
template <int SIZE>
__global__ void groups_scan(const int* in, int* out, int n) {
    auto tile = cg::tiled_partition<SIZE>(cg::this_thread_block());
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const int x = i < n ? in[i] : 0;
    const int upto = cg::inclusive_scan(tile, x, cg::plus<int>());
    const int before = cg::exclusive_scan(tile, x, cg::plus<int>());
    const int peak = cg::inclusive_scan(tile, x, [](int a, int b) { return a > b ? a : b; });
    const int smallest = cg::reduce(tile, x, cg::less<int>());
    const int bits = cg::reduce(tile, x, cg::bit_xor<int>());
    if (i >= n) return;
    out[5 * i] = upto;
    out[5 * i + 1] = before;
    out[5 * i + 2] = peak;
    out[5 * i + 3] = smallest;
    out[5 * i + 4] = bits;
}
