#include <cuda_fp16.h>

// A thread a query row; tiles of keys in shared memory, the running maximum and sum corrected at each tile.
template <int D, int TILE, bool CAUSAL>
__global__ void attention_online(const __half* __restrict__ q, const __half* __restrict__ k, const __half* __restrict__ v,
                                 __half* __restrict__ out, int S, float scale) {
    __shared__ __half Ks[TILE][D], Vs[TILE][D];
    const size_t head = size_t(blockIdx.y) * S * D;
    const int row = blockIdx.x * blockDim.x + threadIdx.x;
    const bool alive = row < S;
    float acc[D], m = -INFINITY, l = 0.0f;
#pragma unroll
    for (int d = 0; d < D; ++d) acc[d] = 0.0f;
    const int end = CAUSAL ? min(S, int((blockIdx.x + 1) * blockDim.x)) : S;
    for (int first = 0; first < end; first += TILE) {
        for (int i = threadIdx.x; i < TILE * D; i += blockDim.x) {
            const int key = first + i / D;
            Ks[i / D][i % D] = key < S ? k[head + key * D + i % D] : __float2half(0.0f);
            Vs[i / D][i % D] = key < S ? v[head + key * D + i % D] : __float2half(0.0f);
        }
        __syncthreads();
        const int count = min(TILE, S - first);
        for (int j = 0; alive && j < count; ++j) {
            if (CAUSAL && first + j > row) break;
            float s = 0.0f;
#pragma unroll
            for (int d = 0; d < D; ++d) s += __half2float(q[head + row * D + d]) * __half2float(Ks[j][d]);
            s *= scale;
            const float top = fmaxf(m, s), shrink = __expf(m - top), p = __expf(s - top);
            l = l * shrink + p;
#pragma unroll
            for (int d = 0; d < D; ++d) acc[d] = acc[d] * shrink + p * __half2float(Vs[j][d]);
            m = top;
        }
        __syncthreads();
    }
    if (alive)
#pragma unroll
        for (int d = 0; d < D; ++d) out[head + row * D + d] = __float2half(acc[d] / l);
}
