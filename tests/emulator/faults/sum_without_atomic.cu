__global__ void __launch_bounds__(32) sum_without_atomic(const float* in, float* sum) {
    float x = in[blockIdx.x * 32 + threadIdx.x];
    for (int o = 16; o; o /= 2) x += __shfl_xor_sync(~0u, x, o);
    if (threadIdx.x == 0) {
#ifdef FIXED
        atomicAdd(sum, x);
#else
        *sum += x;    // FAULT
#endif
    }
}
