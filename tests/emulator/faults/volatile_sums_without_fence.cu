// As partial_sums_without_fence, through volatile pointers on both sides: volatile keeps a value out of L1 and registers, and orders nothing.
__global__ void __launch_bounds__(64) volatile_sums_without_fence(const float* in, volatile float* partial, unsigned* counter, float* out) {
    __shared__ float scratch[2];
    __shared__ bool last;
    auto block_sum = [&](float x) {
        for (int o = 16; o; o /= 2) x += __shfl_xor_sync(~0u, x, o);
        if (threadIdx.x % 32 == 0) scratch[threadIdx.x / 32] = x;
        __syncthreads();
        return scratch[0] + scratch[1];
    };
    float sum = block_sum(in[blockIdx.x * 64 + threadIdx.x]);
    if (threadIdx.x == 0) {
        partial[blockIdx.x] = sum;
#ifdef FIXED
        __threadfence();
#endif
        last = atomicAdd(counter, 1u) == gridDim.x - 1;
    }
    __syncthreads();
    if (!last) return;
    float x = 0.0f;
    for (int i = threadIdx.x; i < gridDim.x; i += 64) x += partial[i];    // FAULT
    sum = block_sum(x);
    if (threadIdx.x == 0) *out = sum;
}
