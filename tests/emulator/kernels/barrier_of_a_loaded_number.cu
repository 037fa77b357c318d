// Pairs of warps wait at a barrier whose number they read from memory: equal in all lanes, which only running it shows.
extern "C" __global__ void barrier_of_a_loaded_number(const int* numbers, const float* x, float* y) {
    __shared__ float tile[128];
    const int t = threadIdx.x, pair = t / 64;
    const int number = numbers[t];
    for (int round = 0; round < 3; round++) {
        tile[t] = x[round * 128 + t];
        asm volatile("bar.sync %0, 64;" ::"r"(number) : "memory");
        y[round * 128 + t] = tile[pair * 64 + 63 - t % 64];
        // the second warp of a pair writes what the first one reads: it waits, the first one goes on
        if (t % 64 < 32) asm volatile("bar.arrive %0, 64;" ::"r"(number ^ 8) : "memory");
        else asm volatile("bar.sync %0, 64;" ::"r"(number ^ 8) : "memory");
        asm volatile("bar.sync %0, 64;" ::"r"(number) : "memory");
    }
}
