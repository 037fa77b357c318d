/* evoengine
name: deconv_phase_taps
precision: fp32
summary: a thread has a pixel of four output channels and visits only the taps that meet its place between the strides; weights of four input channels at a time lie in shared memory
launches:
  - kernel: transposed_conv<K, ST>
    grid: ["ceil_div((H - 1) * ST - 2 * P + K, 8) * ceil_div((W - 1) * ST - 2 * P + K, 16)", "ceil_div(CO, 4)", N]
    block: [16, 8]
    args: [x, weight, bias, out, CI, CO, H, W, P]
*/
constexpr int IN = 4, OUT = 4, TILE_W = 16, TILE_H = 8;

template <int K, int ST>
__global__ void __launch_bounds__(TILE_W * TILE_H)
transposed_conv(const float* __restrict__ x, const float* __restrict__ weight, const float* __restrict__ bias,
                float* __restrict__ out, int CI, int CO, int H, int W, int P) {
    __shared__ float taps[IN][K * K][OUT];
    const int out_h = (H - 1) * ST - 2 * P + K, out_w = (W - 1) * ST - 2 * P + K;
    const int tiles_x = (out_w + TILE_W - 1) / TILE_W;
    const int ox = blockIdx.x % tiles_x * TILE_W + threadIdx.x, oy = blockIdx.x / tiles_x * TILE_H + threadIdx.y;
    const int co0 = blockIdx.y * OUT, image = blockIdx.z, tid = threadIdx.y * TILE_W + threadIdx.x;

    float sum[OUT];
    for (int j = 0; j < OUT; ++j) sum[j] = co0 + j < CO ? bias[co0 + j] : 0.0f;
    for (int ci0 = 0; ci0 < CI; ci0 += IN) {
        for (int i = tid; i < IN * OUT * K * K; i += TILE_W * TILE_H) {
            const int tap = i % (K * K), j = i / (K * K) % OUT, ci = i / (K * K) / OUT;
            const bool inside = ci0 + ci < CI && co0 + j < CO;
            taps[ci][tap][j] = inside ? weight[((ci0 + ci) * CO + co0 + j) * K * K + tap] : 0.0f;
        }
        __syncthreads();
        for (int ky = (oy + P) % ST; ky < K; ky += ST) {
            const int iy = (oy + P - ky) / ST;
            if (oy + P < ky || iy >= H) continue;
            for (int kx = (ox + P) % ST; kx < K; kx += ST) {
                const int ix = (ox + P - kx) / ST;
                if (ox + P < kx || ix >= W) continue;
                for (int ci = 0; ci < IN && ci0 + ci < CI; ++ci) {
                    const float value = x[((size_t(image) * CI + ci0 + ci) * H + iy) * W + ix];
                    for (int j = 0; j < OUT; ++j) sum[j] += value * taps[ci][ky * K + kx][j];
                }
            }
        }
        __syncthreads();
    }
    if (oy >= out_h || ox >= out_w) return;
    for (int j = 0; j < OUT && co0 + j < CO; ++j)
        out[((size_t(image) * CO + co0 + j) * out_h + oy) * out_w + ox] = sum[j];
}
