// Softmax in two passes: running maximum and running sum together, merged over lanes and warps (Milakov and Gimelshein).
struct MaxSum {
    float m, s;
};

__device__ __forceinline__ MaxSum merge(MaxSum a, MaxSum b) {
    MaxSum r;
    bool a_larger = a.m > b.m;
    MaxSum big = a_larger ? a : b;
    MaxSum small = a_larger ? b : a;
    r.m = big.m;
    r.s = fmaf(small.s, __expf(small.m - big.m), big.s);
    return r;
}

__device__ __forceinline__ MaxSum warp_merge(MaxSum v) {
    for (int offset = 16; offset > 0; offset >>= 1) {
        MaxSum o;
        o.m = __shfl_xor_sync(0xffffffff, v.m, offset);
        o.s = __shfl_xor_sync(0xffffffff, v.s, offset);
        v = merge(v, o);
    }
    return v;
}

__global__ void softmax_online(const float* __restrict__ x, float* __restrict__ y, int cols) {
    __shared__ MaxSum parts[32];
    __shared__ MaxSum whole;
    x += blockIdx.x * cols;
    y += blockIdx.x * cols;

    MaxSum v = {-1e30f, 0.0f};
    for (int i = threadIdx.x; i < cols; i += blockDim.x) {
        MaxSum one = {x[i], 1.0f};
        v = merge(v, one);
    }
    v = warp_merge(v);
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = v;
    __syncthreads();
    if (threadIdx.x < 32) {
        v = threadIdx.x < blockDim.x / 32 ? parts[threadIdx.x] : MaxSum{-1e30f, 0.0f};
        v = warp_merge(v);
        if (threadIdx.x == 0) whole = v;
    }
    __syncthreads();
    MaxSum w = whole;
    for (int i = threadIdx.x; i < cols; i += blockDim.x) y[i] = __fdividef(__expf(x[i] - w.m), w.s);
}
