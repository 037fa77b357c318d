#include <cuda_fp16.h>

// Turns neighbouring pairs by angles of their position, from a table of cosines and sines; in place.
__global__ void rotary_half2(__half2* x, const float2* table, int heads, int pairs, int total) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < total; i += gridDim.x * blockDim.x) {
        const int position = i / (heads * pairs);
        const float2 v = __half22float2(x[i]), turn = table[position * pairs + i % pairs];
        x[i] = __floats2half2_rn(v.x * turn.x - v.y * turn.y, v.x * turn.y + v.y * turn.x);
    }
}
