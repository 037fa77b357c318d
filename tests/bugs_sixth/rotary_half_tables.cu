/* evoengine
name: rotary_half_tables
precision: fp16
summary: a block has a token; its row of the tables lies in shared memory in half precision
launches:
  - kernel: turn
    grid: [T]
    block: [64]
    shared: "2 * D"
    args: [x, cosines, sines, out, H, D]
*/
#include <cuda_fp16.h>

__global__ void turn(const float* x, const float* cosines, const float* sines, float* out, int H, int D) {
    extern __shared__ __half table[];
    const int pairs = D / 2;
    for (int i = threadIdx.x; i < pairs; i += 64) {
        table[i] = __float2half(cosines[size_t(blockIdx.x) * pairs + i]);
        table[pairs + i] = __float2half(sines[size_t(blockIdx.x) * pairs + i]);
    }
    __syncthreads();
    for (int i = threadIdx.x; i < H * pairs; i += 64) {
        const size_t at = size_t(blockIdx.x) * H * D + i * 2;
        const float c = __half2float(table[i % pairs]), s = __half2float(table[pairs + i % pairs]);
        const float even = x[at], odd = x[at + 1];
        out[at] = even * c - odd * s;
        out[at + 1] = odd * c + even * s;
    }
}
