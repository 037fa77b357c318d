// A ring of three stages: two copies are on their way while the third is used.
constexpr int STAGES = 3, CHUNK = 256;

__global__ void __launch_bounds__(64) cp_async_stages(const float* in, float* out, int chunks) {
    __shared__ __align__(16) float ring[STAGES][CHUNK];
    const int tid = threadIdx.x;
    const float* mine = in + blockIdx.x * chunks * CHUNK;
    auto start = [&](int chunk) {
        if (chunk < chunks) {
            const unsigned to = __cvta_generic_to_shared(&ring[chunk % STAGES][tid * 4]);
            asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(mine + chunk * CHUNK + tid * 4) : "memory");
        }
        asm volatile("cp.async.commit_group;" ::: "memory");    // empty groups too: their number tells which chunk has come
    };
    for (int chunk = 0; chunk < STAGES - 1; ++chunk) start(chunk);
    float sum = 0.0f;
    for (int chunk = 0; chunk < chunks; ++chunk) {
        asm volatile("cp.async.wait_group %0;" ::"n"(STAGES - 2) : "memory");
        __syncthreads();
        start(chunk + STAGES - 1);
        const float* now = ring[chunk % STAGES];
        for (int i = 0; i < 4; ++i) sum += now[(tid + i * 64 + 1) % CHUNK];    // a neighbour's copy, so the barrier is needed
    }
    out[blockIdx.x * 64 + tid] = sum;
}
