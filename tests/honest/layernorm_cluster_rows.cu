/* evoengine
name: layernorm_cluster_rows
precision: fp32
summary: two blocks of a cluster share a row and exchange their sums through distributed shared memory
tunables:
  THREADS: [256, 128]
launches:
  - kernel: layernorm
    grid: [2, N]
    block: [THREADS]
    args: [x, weight, bias, out, C, eps]
*/
#include <cooperative_groups.h>

namespace cg = cooperative_groups;

// The sum over both blocks. `slot` changes from call to call, so that no value is overwritten before it was read.
__device__ float cluster_sum(float v, int slot) {
    __shared__ float warps[3][THREADS / 32];
    __shared__ float totals[3];
    cg::cluster_group cluster = cg::this_cluster();
    for (int o = 16; o; o /= 2) v += __shfl_xor_sync(~0u, v, o);
    if (threadIdx.x % 32 == 0) warps[slot][threadIdx.x / 32] = v;
    __syncthreads();
    if (threadIdx.x == 0) {
        float s = 0.0f;
        for (int w = 0; w < THREADS / 32; ++w) s += warps[slot][w];
        totals[slot] = s;
    }
    cluster.sync();
    return *cluster.map_shared_rank(&totals[slot], 0) + *cluster.map_shared_rank(&totals[slot], 1);
}

__global__ void __cluster_dims__(2, 1, 1) __launch_bounds__(THREADS)
layernorm(const float* __restrict__ x, const float* __restrict__ weight, const float* __restrict__ bias, float* __restrict__ out, int C, float eps) {
    const size_t row = size_t(blockIdx.y) * C;
    const int first = blockIdx.x * THREADS + threadIdx.x;
    float s = 0.0f, d1 = 0.0f, d2 = 0.0f;
    for (int i = first; i < C; i += 2 * THREADS) s += x[row + i];
    const float mean = cluster_sum(s, 0) / C;
    for (int i = first; i < C; i += 2 * THREADS) {
        const float d = x[row + i] - mean;
        d1 += d, d2 += d * d;
    }
    d1 = cluster_sum(d1, 1) / C;
    const float rstd = rsqrtf(fmaxf(cluster_sum(d2, 2) / C - d1 * d1, 0.0f) + eps);
    for (int i = first; i < C; i += 2 * THREADS) out[row + i] = (x[row + i] - mean - d1) * rstd * weight[i] + bias[i];
    cg::this_cluster().sync();   // a block must not end while the other one reads its shared memory
}
