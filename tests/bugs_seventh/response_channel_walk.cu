/* evoengine
name: response_channel_walk
precision: fp32
summary: a thread has a pixel and a stretch of 8 channels; it walks them with the squares of five in registers
launches:
  - kernel: normalise
    grid: ["ceil_div(P, 64)", "ceil_div(C, 8)", N]
    block: [64]
    args: [x, out, C, P, alpha, bias]
*/
constexpr int STRETCH = 8;

__device__ __forceinline__ float power_of(float base) { return 1.0f / (sqrtf(base) * sqrtf(sqrtf(base))); }

__global__ void __launch_bounds__(64)
normalise(const float* __restrict__ x, float* __restrict__ out, int C, int P, float alpha, float bias) {
    const int pixel = blockIdx.x * 64 + threadIdx.x, first = blockIdx.y * STRETCH;
    if (pixel >= P) return;
    const size_t base = size_t(blockIdx.z) * C * P + pixel;
    auto value_at = [&](int channel) { return channel >= 0 && channel < C ? x[base + size_t(channel) * P] : 0.0f; };

    float window[5];   // of channels c - 2 to c + 2
    for (int j = 1; j < 5; ++j) window[j] = value_at(first + j - 3);
    for (int c = first; c < min(first + STRETCH, C); ++c) {
        for (int j = 0; j < 4; ++j) window[j] = window[j + 1];
        window[4] = value_at(c + 2);
        float squares = 0.0f;
        for (int j = 0; j < 5; ++j) squares += window[j] * window[j];
        out[base + size_t(c) * P] = window[2] * power_of(bias + alpha * squares / 5.0f);
    }
}
