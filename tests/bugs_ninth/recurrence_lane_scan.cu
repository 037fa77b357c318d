/* evoengine
name: recurrence_lane_scan
precision: fp16
summary: a warp has a channel; 32 steps are scanned by shuffles, with inputs and gates rounded to half precision
launches:
  - kernel: scan
    grid: ["ceil_div(C, 4)", B]
    block: [32, 4]
    args: [x, gate, start, out, last, T, C]
*/
#include <cuda_fp16.h>

__device__ __forceinline__ float rounded(float x) { return __half2float(__float2half(x)); }

__global__ void __launch_bounds__(128)
scan(const float* __restrict__ x, const float* __restrict__ gate, const float* __restrict__ start, float* __restrict__ out,
     float* __restrict__ last, int T, int C) {
    const int lane = threadIdx.x, channel = blockIdx.x * 4 + threadIdx.y, batch = blockIdx.y;
    if (channel >= C) return;
    const size_t base = size_t(batch) * T * C + channel;
    float carry = start[size_t(batch) * C + channel];
    for (int from = 0; from < T; from += 32) {
        const int t = from + lane;
        float keep = 1.0f, state = 0.0f;   // a step that is not there keeps all
        if (t < T) {
            keep = rounded(1.0f / (1.0f + __expf(-gate[base + size_t(t) * C])));
            state = (1.0f - keep) * rounded(x[base + size_t(t) * C]);
        }
        for (int step = 1; step < 32; step *= 2) {
            const float earlier_keep = __shfl_up_sync(~0u, keep, step), earlier = __shfl_up_sync(~0u, state, step);
            if (lane >= step) {
                state += keep * earlier;
                keep *= earlier_keep;
            }
        }
        state += keep * carry;
        if (t < T) out[base + size_t(t) * C] = state;
        carry = __shfl_sync(~0u, state, 31);
    }
    if (lane == 0) last[size_t(batch) * C + channel] = carry;
}
