/* evoengine
name: scan_state_lanes
precision: fp32
summary: a lane has one number of a channel's state; 16 tokens at a time lie in shared memory, and the lanes of a channel add what they read by shuffles
launches:
  - kernel: selective_scan<S>
    grid: ["ceil_div(C, 128 // S)", B]
    block: [128]
    args: [x, delta, z, a_log, b, c, skip, shift, out, last, T, C]
*/
constexpr int STEPS = 16;
constexpr float LOG2E = 1.4426950408889634f;

__device__ __forceinline__ float softplus(float v) { return v > 20.0f ? v : log1pf(expf(v)); }

template <int S>
__global__ void __launch_bounds__(128)
selective_scan(const float* __restrict__ x, const float* __restrict__ delta, const float* __restrict__ z,
               const float* __restrict__ a_log, const float* __restrict__ b, const float* __restrict__ c,
               const float* __restrict__ skip, const float* __restrict__ shift, float* __restrict__ out,
               float* __restrict__ last, int T, int C) {
    constexpr int CHANNELS = 128 / S;
    __shared__ float s_x[STEPS][CHANNELS], s_step[STEPS][CHANNELS], s_read[STEPS][CHANNELS];
    __shared__ float s_b[STEPS][S], s_c[STEPS][S];
    const int n = threadIdx.x % S, own = threadIdx.x / S;   // the number of the state, the channel of the block
    const int first = blockIdx.x * CHANNELS, channel = first + own, batch = blockIdx.y;
    const size_t token0 = size_t(batch) * T;

    const float rate = channel < C ? -expf(a_log[channel * S + n]) * LOG2E : 0.0f;
    float state = 0.0f;
    for (int t0 = 0; t0 < T; t0 += STEPS) {
        const int steps = min(STEPS, T - t0);
        for (int i = threadIdx.x; i < STEPS * CHANNELS; i += 128) {
            const int t = i / CHANNELS, k = i % CHANNELS;
            const bool inside = t < steps && first + k < C;
            const size_t at = (token0 + t0 + t) * C + first + k;
            s_x[t][k] = inside ? x[at] : 0.0f;
            s_step[t][k] = softplus(inside ? delta[at] + shift[first + k] : 0.0f);
        }
        for (int i = threadIdx.x; i < STEPS * S; i += 128) {
            const int t = i / S, m = i % S;
            s_b[t][m] = t < steps ? b[(token0 + t0 + t) * S + m] : 0.0f;
            s_c[t][m] = t < steps ? c[(token0 + t0 + t) * S + m] : 0.0f;
        }
        __syncthreads();

        for (int t = 0; t < steps; ++t) {
            const float step = s_step[t][own];
            state = exp2f(step * rate) * state + step * s_x[t][own] * s_b[t][n];
            float read = state * s_c[t][n];
            for (int mask = S / 2; mask > 0; mask /= 2) read += __shfl_xor_sync(0xffffffffu, read, mask);
            if (n == 0) s_read[t][own] = read;
        }
        __syncthreads();   // the tile has been read from the state

        // A thread later fills the very places of s_x that it uses here.
        for (int i = threadIdx.x; i < steps * CHANNELS; i += 128) {
            const int t = i / CHANNELS, k = i % CHANNELS;
            if (first + k >= C) continue;
            const size_t at = (token0 + t0 + t) * C + first + k;
            const float gate = z[at] / (1.0f + expf(-z[at]));
            out[at] = (s_read[t][k] + skip[first + k] * s_x[t][k]) * gate;
        }
    }
    if (channel < C) last[(size_t(batch) * C + channel) * S + n] = state;
}
