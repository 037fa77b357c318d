// Half of the second warp goes to another barrier than the rest of it.
__global__ void __launch_bounds__(64) barrier_in_a_branch(const float* in, float* out, int n) {
    __shared__ float tile[64];
    const int t = threadIdx.x;
    tile[t] = in[t];
#ifdef FIXED
    __syncthreads();
#endif
    if (t < n) {
#ifndef FIXED
        __syncthreads();    // FAULT
#endif
        out[t] = tile[n - 1 - t];
    } else {
        out[t] = 0.0f;
    }
    __syncthreads();    // FAULT
    out[64 + t] = tile[63 - t];
}
