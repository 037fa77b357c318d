/* evoengine
name: advantages_bf16_steps
precision: bf16
summary: a thread an episode, from its end; rewards and values are rounded to bf16 as they are read, the running sum is single
launches:
  - kernel: advantages
    grid: ["ceil_div(B, 32)"]
    block: [32]
    args: [rewards, values, done, advantage, returns, B, T, gamma, trace]
*/
#include <cuda_bf16.h>

__device__ __forceinline__ float rounded(float x) { return __bfloat162float(__float2bfloat16(x)); }

__global__ void __launch_bounds__(32)
advantages(const float* __restrict__ rewards, const float* __restrict__ values, const bool* __restrict__ done,
           float* __restrict__ advantage, float* __restrict__ returns, int B, int T, float gamma, float trace) {
    const int episode = blockIdx.x * 32 + threadIdx.x;
    if (episode >= B) return;
    const float* value = values + size_t(episode) * (T + 1);
    float ahead = 0.0f, next = rounded(value[T]);
    for (int t = T - 1; t >= 0; --t) {
        const size_t at = size_t(episode) * T + t;
        const float alive = done[at] ? 0.0f : 1.0f, own = rounded(value[t]);
        ahead = rounded(rewards[at]) + gamma * next * alive - own + gamma * trace * alive * ahead;
        advantage[at] = ahead;
        returns[at] = ahead + own;
        next = own;
    }
}
