/* evoengine
name: sdpa_thread_per_query
precision: fp16
summary: one thread a query; query and sums in local arrays of 4 D bytes each, online softmax, no shared memory
tunables:
  THREADS: [64, 128, 32]
launches:
  - kernel: attention<D>
    grid: ["ceil_div(S, THREADS)", "B * H"]
    block: [THREADS]
    args: [q, k, v, out, S, scale, causal]
*/
#include <cuda_fp16.h>

template <int D>
__global__ void attention(const half* q, const half* k, const half* v, half* out, int S, float scale, bool causal) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= S) return;
    const size_t head = (size_t)blockIdx.y * S * D;
    float query[D], sum[D];
#pragma unroll 1
    for (int d = 0; d < D; d++) {
        query[d] = __half2float(q[head + (size_t)i * D + d]) * scale;
        sum[d] = 0.0f;
    }
    float m = -INFINITY, l = 0.0f;
    const int keys = causal ? i + 1 : S;
    for (int j = 0; j < keys; j++) {
        const half* key = k + head + (size_t)j * D;
        const half* value = v + head + (size_t)j * D;
        float score = 0.0f;
#pragma unroll 1
        for (int d = 0; d < D; d++) score += query[d] * __half2float(key[d]);
        if (score > m) {   // a new maximum: everything so far shrinks
            const float shrink = expf(m - score);
            l *= shrink;
#pragma unroll 1
            for (int d = 0; d < D; d++) sum[d] *= shrink;
            m = score;
        }
        const float p = expf(score - m);
        l += p;
#pragma unroll 1
        for (int d = 0; d < D; d++) sum[d] += p * __half2float(value[d]);
    }
#pragma unroll 1
    for (int d = 0; d < D; d++) out[head + (size_t)i * D + d] = __float2half(sum[d] / l);
}
