/* evoengine
name: scatter_bf16_sources
precision: bf16
summary: rows are rounded to bfloat16 before they are added in single precision
launches:
  - kernel: clear
    grid: ["ceil_div(V*D, 128)"]
    block: [128]
    args: [out, V*D]
  - kernel: scatter_add
    grid: ["ceil_div(T*D, 128)"]
    block: [128]
    args: [source, index, out, T, D]
*/
#include <cuda_bf16.h>

__global__ void clear(float* out, int count) {
    const int i = blockIdx.x * 128 + threadIdx.x;
    if (i < count) out[i] = 0.0f;
}

__global__ void scatter_add(const float* source, const int* index, float* out, int T, int D) {
    const int i = blockIdx.x * 128 + threadIdx.x;
    if (i >= T * D) return;
    const int t = i / D, d = i % D;
    atomicAdd(&out[index[t] * D + d], __bfloat162float(__float2bfloat16(source[i])));
}
