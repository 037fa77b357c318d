// Producer and consumer warps meet at named barriers: bar.sync and bar.arrive with a number of threads.
__device__ __forceinline__ void bar_sync(int id, int threads) { asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory"); }
__device__ __forceinline__ void bar_arrive(int id, int threads) { asm volatile("bar.arrive %0, %1;" ::"r"(id), "r"(threads) : "memory"); }

extern "C" __global__ void named_barriers(const float* x, float* y, int tiles) {
    __shared__ float buffer[2][64];
    const int group = threadIdx.x / 64, t = threadIdx.x % 64;
    const float* source = x + blockIdx.x * tiles * 64;
    float* target = y + blockIdx.x * tiles * 64;
    if (group == 0) {
        for (int k = 0; k < tiles; ++k) {
            if (k >= 2) bar_sync(3 + (k & 1), 128);  // the consumers have emptied it
            buffer[k & 1][t] = source[k * 64 + t] * 2.0f;
            __threadfence_block();
            bar_arrive(1 + (k & 1), 128);  // it is full
        }
    } else {
        for (int k = 0; k < tiles; ++k) {
            bar_sync(1 + (k & 1), 128);
            float v = buffer[k & 1][63 - t];
            if (k + 2 < tiles) bar_arrive(3 + (k & 1), 128);
            asm volatile("bar.sync 7, 64;" ::: "memory");
            target[k * 64 + t] = v + 1.0f;
        }
    }
}
