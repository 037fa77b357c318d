/* evoengine
name: rotary_half_products
precision: bf16
summary: tables and products in half precision
launches:
  - kernel: rotary
    grid: ["ceil_div(B*S*H*D//2, 128)"]
    block: [128]
    args: [x, cosines, sines, out, B*S*H, S, H, D]
*/
#include <cuda_fp16.h>

__global__ void rotary(const half* x, const float* cosines, const float* sines, half* out, int rows, int S, int H, int D) {
    const int pairs = D / 2;
    const int index = blockIdx.x * 128 + threadIdx.x;
    if (index >= rows * pairs) return;
    const int row = index / pairs, pair = index % pairs;
    const int position = row / H % S;
    const half c = __float2half(cosines[position * pairs + pair]);
    const half s = __float2half(sines[position * pairs + pair]);
    const int i = row * D + pair, j = i + pairs;
    const half first = x[i], second = x[j];
    out[i] = __hsub(__hmul(first, c), __hmul(second, s));
    out[j] = __hadd(__hmul(second, c), __hmul(first, s));
}
