// Two pairs of warps meet at a named barrier in every step, each pair by itself.
#ifdef FIXED
#define NUMBER pair + 1
#else
#define NUMBER 1
#endif
__global__ void __launch_bounds__(128) barrier_of_two_pairs(const float* in, float* out, int steps) {
    __shared__ float tiles[2][2][64];
    const int pair = threadIdx.x / 64, t = threadIdx.x % 64;
    float sum = 0.0f;
    for (int i = 0; i < steps; ++i) {
        tiles[i % 2][pair][t] = in[(i * 2 + pair) * 64 + t];
        asm volatile("bar.sync %0, 64;" ::"r"(NUMBER) : "memory");    // FAULT
        sum += tiles[i % 2][pair][63 - t];
    }
    out[threadIdx.x] = sum;
}
