/* evoengine
name: layernorm_cooperative_tiles
precision: fp32
summary: one warp a row through cooperative groups, streaming loads and stores
tunables:
  WARPS: [8, 4, 16, 2]
launches:
  - kernel: layernorm_rows
    grid: ["ceil_div(N, WARPS)"]
    block: ["WARPS * WARP_SIZE"]
    args: [out, x, weight, bias, N, C, eps]
*/
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>

namespace cg = cooperative_groups;

__global__ void layernorm_rows(float* __restrict__ out, const float* __restrict__ x, const float* __restrict__ weight,
                               const float* __restrict__ bias, int N, int C, float eps) {
    cg::thread_block block = cg::this_thread_block();
    cg::thread_block_tile<32> warp = cg::tiled_partition<32>(block);
    const int row = blockIdx.x * warp.meta_group_size() + warp.meta_group_rank();
    if (row >= N) return;
    const float* in = x + size_t(row) * C;
    float* result = out + size_t(row) * C;

    float sum = 0.0f;
    for (int c = warp.thread_rank(); c < C; c += warp.size()) sum += in[c];
    const float mean = cg::reduce(warp, sum, cg::plus<float>{}) / C;

    float squares = 0.0f, rest = 0.0f;
    for (int c = warp.thread_rank(); c < C; c += warp.size()) {
        const float d = in[c] - mean;
        squares += d * d;
        rest += d;
    }
    // The deviations add up to the rounding error of the mean, times C.
    const float correction = cg::reduce(warp, rest, cg::plus<float>{}) / C;
    const float variance = cg::reduce(warp, squares, cg::plus<float>{}) / C - correction * correction;
    const float rstd = 1.0f / sqrtf(fmaxf(variance, 0.0f) + eps);

    // These rows are not read again: they should not push weight and bias out of the cache.
    for (int c = warp.thread_rank(); c < C; c += warp.size())
        __stcs(result + c, ((__ldcs(in + c) - mean) - correction) * rstd * __ldg(weight + c) + __ldg(bias + c));
}
