// The next copy starts before all have used the tile.
__global__ void __launch_bounds__(64) copy_over_a_used_tile(const float* in, float* out, int tiles) {
    __shared__ __align__(16) float tile[256];
    const int t = threadIdx.x;
    const unsigned to = __cvta_generic_to_shared(&tile[t * 4]);
    float sum = 0.0f;
    for (int i = 0; i < tiles; ++i) {
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(in + i * 256 + t * 4) : "memory");    // FAULT
        asm volatile("cp.async.wait_all;" ::: "memory");
        __syncthreads();
        for (int j = 0; j < 4; ++j) sum += tile[255 - t - 64 * j];
#ifdef FIXED
        __syncthreads();
#endif
    }
    out[t] = sum;
}
