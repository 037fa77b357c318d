#include <cuda_fp16.h>

// One warp a query row, three passes: scores into shared memory, softmax, weighted values. D = 64, two values a lane.
__global__ void attention_rows(const __half* q, const __half* k, const __half* v, __half* out, int S, float scale) {
    extern __shared__ float scores[];
    const int lane = threadIdx.x, warp = threadIdx.y, row = blockIdx.x * blockDim.y + warp;
    if (row >= S) return;    // whole warps; there is no block-wide barrier
    float* mine = scores + warp * S;
    const size_t head = size_t(blockIdx.y) * S * 64;
    const float2 q2 = __half22float2(reinterpret_cast<const __half2*>(q + head + row * 64)[lane]);
    float top = -INFINITY;
    for (int key = 0; key < S; ++key) {
        const float2 k2 = __half22float2(reinterpret_cast<const __half2*>(k + head + key * 64)[lane]);
        float dot = q2.x * k2.x + q2.y * k2.y;
        for (int offset = 16; offset > 0; offset >>= 1) dot += __shfl_xor_sync(0xffffffff, dot, offset);
        dot *= scale;
        if (lane == 0) mine[key] = dot;
        top = fmaxf(top, dot);
    }
    __syncwarp();
    float sum = 0.0f;
    for (int key = lane; key < S; key += 32) {
        const float p = expf(mine[key] - top);
        mine[key] = p;
        sum += p;
    }
    for (int offset = 16; offset > 0; offset >>= 1) sum += __shfl_xor_sync(0xffffffff, sum, offset);
    __syncwarp();
    float2 o = make_float2(0.0f, 0.0f);
    for (int key = 0; key < S; ++key) {
        const float2 v2 = __half22float2(reinterpret_cast<const __half2*>(v + head + key * 64)[lane]);
        o.x += mine[key] * v2.x;
        o.y += mine[key] * v2.y;
    }
    reinterpret_cast<__half2*>(out + head + row * 64)[lane] = __floats2half2_rn(o.x / sum, o.y / sum);
}
