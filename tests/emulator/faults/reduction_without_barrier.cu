// A tree over the block whose steps are not separated.
__global__ void __launch_bounds__(128) reduction_without_barrier(const float* in, float* out) {
    __shared__ float part[128];
    const int t = threadIdx.x;
    part[t] = in[blockIdx.x * 128 + t];
    __syncthreads();
    for (int half = 64; half; half /= 2) {
        if (t < half) part[t] += part[t + half];    // FAULT
#ifdef FIXED
        __syncthreads();
#endif
    }
    if (t == 0) out[blockIdx.x] = part[0];
}
