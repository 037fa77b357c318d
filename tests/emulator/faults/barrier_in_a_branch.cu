// Half of the second warp never comes to this barrier.
__global__ void __launch_bounds__(64) barrier_in_a_branch(const float* in, float* out, int n) {
    __shared__ float tile[64];
    const int t = threadIdx.x;
    tile[t] = in[t];
#ifdef FIXED
    __syncthreads();
    if (t < n) out[t] = tile[n - 1 - t];
#else
    if (t < n) {
        __syncthreads();    // FAULT
        out[t] = tile[n - 1 - t];
    }
#endif
}
