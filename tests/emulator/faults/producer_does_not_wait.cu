// Warp 0 fills a buffer, warp 1 empties it; warp 0 must wait until it is empty.
__global__ void __launch_bounds__(64) producer_does_not_wait(const float* in, float* out, int steps) {
    __shared__ float buffer[32];
    const int lane = threadIdx.x % 32;
    if (threadIdx.x < 32) {
        for (int i = 0; i < steps; ++i) {
#ifdef FIXED
            if (i) asm volatile("bar.sync 2, 64;" ::: "memory");
#endif
            buffer[lane] = in[i * 32 + lane];    // FAULT
            asm volatile("bar.sync 1, 64;" ::: "memory");
        }
    } else {
        float sum = 0.0f;
        for (int i = 0; i < steps; ++i) {
            asm volatile("bar.sync 1, 64;" ::: "memory");
            sum += buffer[31 - lane];
#ifdef FIXED
            if (i + 1 < steps) asm volatile("bar.sync 2, 64;" ::: "memory");
#endif
        }
        out[lane] = sum;
    }
}
