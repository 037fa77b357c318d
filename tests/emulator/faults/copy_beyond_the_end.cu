// The last copy should take less than 16 bytes from the source.
__global__ void __launch_bounds__(32) copy_beyond_the_end(const float* in, float* out, int n) {
    __shared__ __align__(16) float tile[128];
    const int t = threadIdx.x;
    const unsigned to = __cvta_generic_to_shared(&tile[t * 4]);
#ifdef FIXED
    const int left = min(max(n - t * 4, 0), 4) * 4;
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(in + t * 4), "r"(left) : "memory");
#else
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(in + t * 4) : "memory");    // FAULT
#endif
    asm volatile("cp.async.wait_all;" ::: "memory");
    __syncthreads();
    for (int i = t; i < n; i += 32) out[i] = tile[n - 1 - i];
}
