// The lanes of the first warp spin on a flag each. The third warp sets those of even lanes and, some time later, the second one
// the rest; then all lanes of the first warp exchange what they have.
__global__ void lanes_spin(const int* x, int* out) {
    __shared__ volatile int flags[32];
    __shared__ volatile int half;
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    if (warp == 0) flags[lane] = 0;
    if (threadIdx.x == 0) half = 0;
    __syncthreads();
    if (warp == 0) {
        int sum;
        do { sum = flags[lane]; } while (sum == 0);
#pragma unroll
        for (int step = 16; step; step /= 2) sum += __shfl_xor_sync(~0u, sum, step);
        out[blockIdx.x * 32 + lane] = sum + __popc(__ballot_sync(~0u, lane % 4 == 0));
    } else if (warp == 2) {
        if (lane % 2 == 0) flags[lane] = x[blockIdx.x * 32 + lane];
        __syncwarp();
        if (lane == 0) half = 1;
    } else if (warp == 1) {
        while (half == 0) {
        }
        if (lane % 2 == 1) flags[lane] = x[blockIdx.x * 32 + lane];
    }
}
