// The last block adds up what the others left, but nothing tells them to publish it before they count themselves.
__global__ void __launch_bounds__(32) partial_sums_without_fence(const float* in, float* partial, unsigned* counter, float* out) {
    float x = in[blockIdx.x * 32 + threadIdx.x];
    for (int o = 16; o; o /= 2) x += __shfl_xor_sync(~0u, x, o);
    unsigned turn = 0;
    if (threadIdx.x == 0) {
        partial[blockIdx.x] = x;
#ifdef FIXED
        __threadfence();
#endif
        turn = atomicAdd(counter, 1u);
    }
    turn = __shfl_sync(~0u, turn, 0);
    if (turn != gridDim.x - 1 || threadIdx.x) return;
    float sum = 0.0f;
    for (int i = 0; i < gridDim.x; ++i) sum += partial[i];    // FAULT
    *out = sum;
}
