/* evoengine
name: advantages_backward_scan
precision: fp32
summary: a warp an episode, 32 steps at a time from the end; a scan of linear maps by shuffles, with the advantage of the first step as carry
launches:
  - kernel: advantages
    grid: ["ceil_div(B, 4)"]
    block: [32, 4]
    args: [rewards, values, done, advantage, returns, B, T, gamma, trace]
*/

__global__ void __launch_bounds__(128)
advantages(const float* __restrict__ rewards, const float* __restrict__ values, const bool* __restrict__ done,
           float* __restrict__ advantage, float* __restrict__ returns, int B, int T, float gamma, float trace) {
    const int lane = threadIdx.x, episode = blockIdx.x * 4 + threadIdx.y;
    if (episode >= B) return;
    const size_t begin = size_t(episode) * T;
    const float* value = values + size_t(episode) * (T + 1);

    float carry = 0.0f;
    for (int start = (T - 1) / 32 * 32; start >= 0; start -= 32) {
        const int t = start + lane;
        const bool inside = t < T;
        // what comes later is multiplied by `slope`, then `offset` is added
        float slope = 1.0f, offset = 0.0f, own = 0.0f;
        if (inside) {
            const float alive = done[begin + t] ? 0.0f : 1.0f;
            own = value[t];
            offset = rewards[begin + t] + gamma * value[t + 1] * alive - own;
            slope = gamma * trace * alive;
        }
#pragma unroll
        for (int step = 1; step < 32; step *= 2) {
            const float later_slope = __shfl_down_sync(0xffffffffu, slope, step);
            const float later_offset = __shfl_down_sync(0xffffffffu, offset, step);
            if (lane + step < 32) {
                offset += slope * later_offset;
                slope *= later_slope;
            }
        }
        const float found = offset + slope * carry;
        carry = __shfl_sync(0xffffffffu, found, 0);
        if (inside) {
            advantage[begin + t] = found;
            returns[begin + t] = found + own;
        }
    }
}
