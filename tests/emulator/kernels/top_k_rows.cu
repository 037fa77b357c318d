#include <cuda_fp16.h>

// The K largest of a row by a warp: K rounds, each finds the largest that is left; the earlier index wins a tie.
template <int K>
__global__ void top_k_rows(const __half* in, __half* values, int* indices, int columns) {
    extern __shared__ float left[];
    const int lane = threadIdx.x, row = blockIdx.x;
    for (int i = lane; i < columns; i += 32) left[i] = __half2float(in[row * columns + i]);
    __syncwarp();
    for (int round = 0; round < K; ++round) {
        float best = -INFINITY;
        int where = columns;
        for (int i = lane; i < columns; i += 32)
            if (left[i] > best) best = left[i], where = i;
#pragma unroll
        for (int offset = 16; offset > 0; offset >>= 1) {
            const float other = __shfl_down_sync(0xffffffff, best, offset);
            const int there = __shfl_down_sync(0xffffffff, where, offset);
            if (other > best || (other == best && there < where)) best = other, where = there;
        }
        if (lane == 0) {
            values[row * K + round] = __float2half(best);
            indices[row * K + round] = where;
            left[where] = -INFINITY;
        }
        __syncwarp();
    }
}
