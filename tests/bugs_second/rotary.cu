/* evoengine
name: rotary
precision: fp16
summary: a thread turns one pair of elements
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
    const float c = cosines[position * pairs + pair];
    const float s = sines[position * pairs + pair];
    const int i = row * D + pair, j = i + pairs;
    float first = __half2float(x[i]), second = __half2float(x[j]);
    const float turned = first * c - second * s;
    second = second * c + first * s;
    out[i] = __float2half(turned);
    out[j] = __float2half(second);
}
