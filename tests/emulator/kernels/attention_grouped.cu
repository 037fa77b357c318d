#include <cuda_fp16.h>

// Several query heads share one head of keys and values. A warp a row, online softmax, D = 64.
__global__ void attention_grouped(const __half2* q, const __half2* k, const __half2* v, __half2* out,
                                  int heads, int kv_heads, int S, float scale) {
    const int lane = threadIdx.x % 32, row = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
    const int head = blockIdx.y, kv_head = head / (heads / kv_heads);
    if (row >= S) return;
    const int at = (head * S + row) * 32 + lane;
    const float2 mine = __half22float2(q[at]);
    float m = -INFINITY, l = 0.0f;
    float2 o = make_float2(0.f, 0.f);
    for (int key = 0; key < S; ++key) {
        const int from = (kv_head * S + key) * 32 + lane;
        const float2 k2 = __half22float2(k[from]), v2 = __half22float2(v[from]);
        float s = fmaf(mine.x, k2.x, mine.y * k2.y);
#pragma unroll
        for (int offset = 16; offset > 0; offset >>= 1) s += __shfl_xor_sync(0xffffffffu, s, offset);
        s *= scale;
        const float top = fmaxf(m, s), shrink = __expf(m - top), p = __expf(s - top);
        l = fmaf(l, shrink, p);
        o.x = fmaf(o.x, shrink, p * v2.x);
        o.y = fmaf(o.y, shrink, p * v2.y);
        m = top;
    }
    out[at] = __float22half2_rn(make_float2(__fdividef(o.x, l), __fdividef(o.y, l)));
}
