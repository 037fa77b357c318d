/* evoengine
name: recurrence_thread_per_row
precision: fp32
summary: a thread a recurrence, one step after the other; few warps
launches:
  - kernel: recur
    grid: ["ceil_div(N, 64)"]
    block: [64]
    args: [decay, x, out, L, N]
*/
__global__ void __launch_bounds__(64)
recur(const float* __restrict__ decay, const float* __restrict__ x, float* __restrict__ out, int L, int N) {
    const int own = blockIdx.x * 64 + threadIdx.x;
    if (own >= N) return;
    float h = 0.0f;
#pragma unroll 4
    for (int t = 0; t < L; ++t) {
        h = decay[size_t(t) * N + own] * h + x[size_t(t) * N + own];
        out[size_t(t) * N + own] = h;
    }
}
