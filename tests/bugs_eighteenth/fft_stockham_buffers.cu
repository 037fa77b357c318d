/* evoengine
name: fft_stockham_buffers
precision: fp32
summary: a block has a row and a thread a butterfly of each step, from one buffer in shared memory to the other, in Stockham's order
launches:
  - kernel: transform<N>
    grid: [B]
    block: [N // 2]
    args: [real, imaginary, cosines, sines]
*/
template <int N>
__global__ void __launch_bounds__(N / 2)
transform(const float* __restrict__ real, const float* __restrict__ imaginary, float* __restrict__ cosines,
          float* __restrict__ sines) {
    constexpr int HALF = N / 2;
    __shared__ float2 buffers[2][N];
    const int thread = threadIdx.x;
    const size_t base = size_t(blockIdx.x) * N;
    for (int i = thread; i < N; i += HALF) buffers[0][i] = make_float2(real[base + i], imaginary[base + i]);
    __syncthreads();

    int turn = 0;
    for (int span = 1; span < N; span *= 2) {
        const int within = thread % span, to = thread / span * span * 2 + within;
        float sine, cosine;
        sincospif(-float(within) / span, &sine, &cosine);
        const float2 upper = buffers[turn][thread], lower = buffers[turn][thread + HALF];
        const float x = lower.x * cosine - lower.y * sine, y = lower.x * sine + lower.y * cosine;
        turn = 1 - turn;
        buffers[turn][to] = make_float2(upper.x + x, upper.y + y);
        buffers[turn][to + span] = make_float2(upper.x - x, upper.y - y);
        __syncthreads();   // the step is complete
    }
    for (int i = thread; i < N; i += HALF) {
        cosines[base + i] = buffers[turn][i].x;
        sines[base + i] = buffers[turn][i].y;
    }
}
