/* evoengine
name: swiglu_bf16_products
precision: bf16
summary: a warp has a row, a lane four neighbouring columns at a time; products are rounded to bfloat16 and computed twice
launches:
  - kernel: quantise
    grid: ["ceil_div(T, 4)"]
    block: [32, 4]
    args: [x, smooth, packed, scales, T, C, least]
*/
#include <cuda_bf16.h>

__device__ float rounded(float x) { return __bfloat162float(__float2bfloat16(x)); }

__global__ void quantise(const float* x, const float* smooth, signed char* packed, float* scales, int T, int C,
                         float least) {
    const int lane = threadIdx.x, row = blockIdx.x * 4 + threadIdx.y;
    if (row >= T) return;
    const float* values = x + size_t(row) * 2 * C;
    auto product = [&](int i) {
        const float gate = values[i], up = values[C + i];
        return rounded(rounded(gate / (1.0f + expf(-gate))) * up * smooth[i]);
    };
    float largest = 0.0f;
    for (int start = lane * 4; start < C; start += 128)
        for (int i = start; i < min(C, start + 4); ++i) largest = fmaxf(largest, fabsf(product(i)));
    for (int step = 16; step > 0; step /= 2) largest = fmaxf(largest, __shfl_xor_sync(~0u, largest, step));
    const float scale = fmaxf(largest, least) / 127.0f;
    if (lane == 0) scales[row] = scale;
    signed char* line = packed + size_t(row) * C;
    for (int start = lane * 4; start < C; start += 128)
        for (int i = start; i < min(C, start + 4); ++i) line[i] = static_cast<signed char>(rintf(product(i) / scale));
}
