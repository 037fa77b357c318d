// The largest block: 32 warps, each handing its value to the next through shared memory over many barriers.
__global__ void __launch_bounds__(1024, 1) block_1024(const unsigned int* x, unsigned int* out, int steps) {
    __shared__ unsigned int ring[2][1024];
    unsigned int t = threadIdx.y * blockDim.x + threadIdx.x;
    unsigned int g = blockIdx.x * 1024 + t;
    ring[0][t] = x[g];
    __syncthreads();
    int at = 0;
    for (int s = 0; s < steps; ++s) {
        ring[at ^ 1][t] = ring[at][(t + 32) & 1023] * 1664525u + ring[at][(t + 1023) & 1023] + 1013904223u;
        at ^= 1;
        __syncthreads();
    }
    out[g] = ring[at][t];
}
