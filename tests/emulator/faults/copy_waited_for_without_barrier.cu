// Waiting is for one's own copies only.
__global__ void __launch_bounds__(64) copy_waited_for_without_barrier(const float* in, float* out) {
    __shared__ __align__(16) float tile[256];
    const int t = threadIdx.x;
    const unsigned to = __cvta_generic_to_shared(&tile[t * 4]);
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(in + t * 4) : "memory");
    asm volatile("cp.async.commit_group;" ::: "memory");
    asm volatile("cp.async.wait_group 0;" ::: "memory");
#ifdef FIXED
    __syncthreads();
#endif
    out[t] = tile[255 - t];    // FAULT
}
