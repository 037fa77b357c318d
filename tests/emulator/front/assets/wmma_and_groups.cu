// Every shape and type of WMMA, and most of cooperative groups, in templates that a test instantiates.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
#include <mma.h>
using namespace nvcuda;
namespace cg = cooperative_groups;

template <int M, int N, int K, typename T, typename C, typename LA, typename LB>
__global__ void product(const T* a, const T* b, C* c, int ld) {
    wmma::fragment<wmma::matrix_a, M, N, K, T, LA> fa;
    wmma::fragment<wmma::matrix_b, M, N, K, T, LB> fb;
    wmma::fragment<wmma::accumulator, M, N, K, C> fc, fd;
    wmma::load_matrix_sync(fa, a, 0);
    wmma::load_matrix_sync(fb, b, ld);
    wmma::fill_fragment(fc, 0.0f);
    for (int i = 0; i < fa.num_elements; ++i) fa.x[i] = fa.x[i] + fa.x[i];
    wmma::mma_sync(fd, fa, fb, fc);
    wmma::load_matrix_sync(fc, c, 0, wmma::mem_col_major);
    wmma::mma_sync(fd, fa, fb, fc);
    wmma::store_matrix_sync(c, fd, ld, ld > 3 ? wmma::mem_row_major : wmma::mem_col_major);
}

__global__ void product_tf32(const float* a, const float* b, float* c) {
    wmma::fragment<wmma::matrix_a, 16, 16, 8, wmma::precision::tf32, wmma::row_major> fa;
    wmma::fragment<wmma::matrix_b, 16, 16, 8, wmma::precision::tf32, wmma::col_major> fb;
    wmma::fragment<wmma::accumulator, 16, 16, 8, float> fc;
    wmma::load_matrix_sync(fa, a, 8);
    wmma::load_matrix_sync(fb, b, 8);
    wmma::fill_fragment(fc, 0.0f);
    for (int t = 0; t < fa.num_elements; ++t) fa.x[t] = wmma::__float_to_tf32(fa.x[t]);
    wmma::mma_sync(fc, fa, fb, fc);
    wmma::store_matrix_sync(c, fc, 16, wmma::mem_row_major);
}

__global__ void groups(float* p, int n) {
    auto block = cg::this_thread_block();
    auto tile = cg::tiled_partition<16>(block);
    cg::thread_block_tile<32> warp = cg::tiled_partition<32>(block);
    float x = p[block.thread_rank()];
    x = cg::reduce(tile, x, cg::plus<float>()) + cg::reduce(warp, x, cg::greater<float>()) + cg::reduce(warp, (int)x, cg::less<int>());
    x += tile.shfl_down(x, 2) + tile.shfl_up(x, 1) + tile.shfl_xor(x, 4) + tile.shfl(x, 0);
    x += warp.ballot(x > 1) + tile.any(x > 2) + tile.all(x < 3) + tile.match_any(n) + warp.meta_group_rank() + tile.meta_group_size();
    if (threadIdx.x % 3 == 0) {
        auto active = cg::coalesced_threads();
        x += active.size() + active.thread_rank() + cg::reduce(active, x, cg::plus<float>()) + active.shfl(x, 1) + active.ballot(x > 3);
        x += active.shfl_up((double)x, 1) + active.any(x > 1) + active.all(x > 2);
        active.sync();
    }
    x += cg::inclusive_scan(tile, x) + cg::exclusive_scan(warp, x, cg::plus<float>());
    cg::sync(block);
    tile.sync();
    block.sync();
    p[cg::this_grid().thread_rank()] = x + block.group_index().x + block.thread_index().y + cg::this_grid().size();
}
