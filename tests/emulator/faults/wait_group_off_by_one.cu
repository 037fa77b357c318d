// Two stages: all but the newest group must have come.
#ifdef FIXED
#define PENDING 1
#else
#define PENDING 2
#endif
__global__ void __launch_bounds__(64) wait_group_off_by_one(const float* in, float* out, int tiles) {
    __shared__ __align__(16) float tile[2][256];
    const int t = threadIdx.x;
    auto start = [&](int i) {
        if (i < tiles) {
            const unsigned to = __cvta_generic_to_shared(&tile[i % 2][t * 4]);
            asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(in + i * 256 + t * 4) : "memory");
        }
        asm volatile("cp.async.commit_group;" ::: "memory");
    };
    start(0);
    float sum = 0.0f;
    for (int i = 0; i < tiles; ++i) {
        start(i + 1);
        asm volatile("cp.async.wait_group %0;" ::"n"(PENDING) : "memory");
        __syncthreads();
        for (int j = 0; j < 4; ++j) sum += tile[i % 2][255 - t - 64 * j];    // FAULT
        __syncthreads();
    }
    out[t] = sum;
}
