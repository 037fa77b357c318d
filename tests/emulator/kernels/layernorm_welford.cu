#include <cuda_fp16.h>

struct Moments {
    float count, mean, m2;
};

// Chan's formula joins two sets; an empty one changes nothing.
__device__ Moments merge(Moments a, Moments b) {
    const float count = a.count + b.count;
    if (count == 0.0f) return a;
    const float delta = b.mean - a.mean, part = b.count / count;
    return {count, a.mean + delta * part, a.m2 + b.m2 + delta * delta * a.count * part};
}

// Mean and variance in one pass, each thread by Welford, then merged over the warp and the block.
__global__ void layernorm_welford(const __half* in, const float* gamma, const float* beta, __half* out, int columns, float eps) {
    __shared__ Moments parts[4];
    const __half* row = in + size_t(blockIdx.x) * columns;
    Moments mine = {0.0f, 0.0f, 0.0f};
    for (int i = threadIdx.x; i < columns; i += blockDim.x) {
        const float x = __half2float(row[i]), delta = x - mine.mean;
        mine.count += 1.0f;
        mine.mean += delta / mine.count;
        mine.m2 += delta * (x - mine.mean);
    }
    for (int offset = 16; offset > 0; offset /= 2) {
        Moments other;
        other.count = __shfl_xor_sync(0xffffffff, mine.count, offset);
        other.mean = __shfl_xor_sync(0xffffffff, mine.mean, offset);
        other.m2 = __shfl_xor_sync(0xffffffff, mine.m2, offset);
        mine = merge(mine, other);
    }
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = mine;
    __syncthreads();
    Moments all = parts[0];
    for (int w = 1; w < blockDim.x / 32; ++w) all = merge(all, parts[w]);
    const float inverse = rsqrtf(all.m2 / columns + eps);
    for (int i = threadIdx.x; i < columns; i += blockDim.x)
        out[size_t(blockIdx.x) * columns + i] = __float2half((__half2float(row[i]) - all.mean) * inverse * gamma[i] + beta[i]);
}
