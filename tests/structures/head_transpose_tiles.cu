/* evoengine
name: head_transpose_tiles
precision: fp16
summary: tiles of 64 positions by 64 dimensions through padded shared memory, read eight halves at a time and written two
launches:
  - kernel: transpose
    grid: [S // 64, H, B]
    block: [256]
    args: [x, out, S, H]
*/
#include <cuda_fp16.h>

__global__ void __launch_bounds__(256) transpose(const __half* __restrict__ x, __half* __restrict__ out, int S, int H) {
    __shared__ __half tile[64][66];
    const int t = threadIdx.x, first = blockIdx.x * 64, head = blockIdx.y, sequence = blockIdx.z;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
        const int position = i * 32 + t / 8, chunk = t % 8;
        const int4 v = reinterpret_cast<const int4*>(x + ((size_t(sequence) * S + first + position) * H + head) * 64)[chunk];
        __half2* to = reinterpret_cast<__half2*>(&tile[position][chunk * 8]);
#pragma unroll
        for (int j = 0; j < 4; ++j) to[j] = reinterpret_cast<const __half2*>(&v)[j];
    }
    __syncthreads();
#pragma unroll
    for (int i = 0; i < 8; ++i) {
        const int dimension = i * 8 + t / 32, position = t % 32 * 2;
        *reinterpret_cast<__half2*>(out + ((size_t(sequence) * H + head) * 64 + dimension) * S + first + position) =
            __halves2half2(tile[position][dimension], tile[position + 1][dimension]);
    }
}
