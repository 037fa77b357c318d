__global__ void __launch_bounds__(32) copy_never_waited_for(const float* in, float* out) {
    __shared__ __align__(16) float tile[128];
    const int t = threadIdx.x;
    const unsigned to = __cvta_generic_to_shared(&tile[t * 4]);
    asm volatile("cp.async.ca.shared.global [%0], [%1], 16;" ::"r"(to), "l"(in + t * 4) : "memory");
    asm volatile("cp.async.commit_group;" ::: "memory");
#ifdef FIXED
    asm volatile("cp.async.wait_all;" ::: "memory");
#endif
    __syncthreads();
    out[t] = tile[127 - t];    // FAULT
}
