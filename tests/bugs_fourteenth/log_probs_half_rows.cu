/* evoengine
name: log_probs_half_rows
precision: fp16
summary: a warp a row; logits over the temperature are rounded to half once and kept in shared memory, the sums are single
launches:
  - kernel: log_probs
    grid: [N]
    block: [32]
    shared: 2 * V
    args: [logits, logs, entropy, V, temperature]
*/
#include <cuda_fp16.h>

__global__ void __launch_bounds__(32)
log_probs(const float* __restrict__ logits, float* __restrict__ logs, float* __restrict__ entropy, int V,
          float temperature) {
    extern __shared__ __half kept[];
    const size_t begin = size_t(blockIdx.x) * V;
    float top = -INFINITY;
    for (int i = threadIdx.x; i < V; i += 32) {
        const __half z = __float2half(logits[begin + i] / temperature);
        kept[i] = z;
        top = fmaxf(top, __half2float(z));
    }
    for (int mask = 1; mask < 32; mask *= 2) top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, mask));
    float sum = 0.0f, moment = 0.0f;
    for (int i = threadIdx.x; i < V; i += 32) {
        const float way = __half2float(kept[i]) - top, power = expf(way);
        sum += power;
        moment += power * way;
    }
    for (int mask = 1; mask < 32; mask *= 2) {
        sum += __shfl_xor_sync(0xffffffffu, sum, mask);
        moment += __shfl_xor_sync(0xffffffffu, moment, mask);
    }
    const float height = logf(sum);
    for (int i = threadIdx.x; i < V; i += 32) logs[begin + i] = __half2float(kept[i]) - top - height;
    if (threadIdx.x == 0) entropy[blockIdx.x] = height - moment / sum;
}
