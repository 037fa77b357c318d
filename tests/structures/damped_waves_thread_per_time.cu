/* evoengine
name: damped_waves_thread_per_time
precision: fp32
summary: a thread a time, with a fast exponential and a fast sine for each wave; the waves lie in shared memory
launches:
  - kernel: waves
    grid: ["ceil_div(T, 256)"]
    block: [256]
    args: [times, damping, frequency, out, T, K]
*/
__global__ void __launch_bounds__(256)
waves(const float* __restrict__ times, const float* __restrict__ damping, const float* __restrict__ frequency, float* __restrict__ out, int T, int K) {
    __shared__ float2 wave[128];
    if (threadIdx.x < K) wave[threadIdx.x] = make_float2(-damping[threadIdx.x], frequency[threadIdx.x]);
    __syncthreads();
    const int at = blockIdx.x * 256 + threadIdx.x;
    if (at >= T) return;
    const float time = times[at];
    float sum = 0.0f;
#pragma unroll 4
    for (int k = 0; k < K; ++k) sum += __expf(wave[k].x * time) * __sinf(wave[k].y * time);
    out[at] = sum;
}
