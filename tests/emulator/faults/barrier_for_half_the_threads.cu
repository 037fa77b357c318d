// A named barrier that counts 32 threads lets each warp through alone.
#ifdef FIXED
#define COUNT 64
#else
#define COUNT 32
#endif
__global__ void __launch_bounds__(64) barrier_for_half_the_threads(const float* in, float* out) {
    __shared__ float tile[64];
    const int t = threadIdx.x;
    tile[t] = in[t];
    asm volatile("bar.sync 1, %0;" ::"n"(COUNT) : "memory");
    out[t] = tile[63 - t];    // FAULT
}
