// Warps of a block hand a value on through a volatile flag: each spins until the one before it has written.
__global__ void volatile_spin(const int* x, int* out) {
    __shared__ volatile int turn;
    __shared__ volatile int value;
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    if (threadIdx.x == 0) {
        turn = 0;
        value = 1;
    }
    __syncthreads();
    if (lane == 0) {
        while (turn != warp) {
        }
        __threadfence_block();
        int v = value * 3 + x[blockIdx.x * (blockDim.x / 32) + warp];
        value = v;
        out[blockIdx.x * (blockDim.x / 32) + warp] = v;
        __threadfence_block();
        turn = warp + 1;
    }
    __syncthreads();
}
