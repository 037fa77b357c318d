__global__ void __launch_bounds__(128) histogram_without_atomic(const int* in, int* out) {
    __shared__ int bins[16];
    const int t = threadIdx.x;
    if (t < 16) bins[t] = 0;
    __syncthreads();
#ifdef FIXED
    atomicAdd(&bins[in[blockIdx.x * 128 + t]], 1);
#else
    bins[in[blockIdx.x * 128 + t]] += 1;    // FAULT
#endif
    __syncthreads();
    if (t < 16) atomicAdd(&out[t], bins[t]);
}
