// A maximum that is kept in scratch memory, which nobody cleared.
__global__ void __launch_bounds__(64) scratch_read_first(const float* in, float* scratch) {
    const int t = threadIdx.x;
#ifdef FIXED
    scratch[t] = -INFINITY;
    __syncthreads();
#endif
    scratch[t] = fmaxf(scratch[t], in[t]);    // FAULT
}
