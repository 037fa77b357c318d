#include <cuda_bf16.h>

// A causal row sees its last `window` keys only; bfloat16, a block a row, one thread a dimension.
template <int D>
__global__ void attention_window(const __nv_bfloat16* q, const __nv_bfloat16* k, const __nv_bfloat16* v,
                                 float* out, int S, int window, float scale) {
    __shared__ float parts[D / 32];
    const int row = blockIdx.x, d = threadIdx.x;
    const size_t head = size_t(blockIdx.y) * S * D;
    const float mine = __bfloat162float(q[head + row * D + d]) * scale;
    float m = -INFINITY, l = 0.0f, o = 0.0f;
    for (int key = max(0, row - window + 1); key <= row; ++key) {
        float s = mine * __bfloat162float(k[head + key * D + d]);
        for (int offset = 16; offset > 0; offset >>= 1) s += __shfl_down_sync(0xffffffff, s, offset);
        if (d % 32 == 0) parts[d / 32] = s;
        __syncthreads();
        s = 0.0f;
        for (int w = 0; w < D / 32; ++w) s += parts[w];
        __syncthreads();
        const float top = fmaxf(m, s), shrink = expf(m - top), p = expf(s - top);
        l = l * shrink + p;
        o = o * shrink + p * __bfloat162float(v[head + key * D + d]);
        m = top;
    }
    out[head + row * D + d] = o / l;
}
