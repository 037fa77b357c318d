// The tile's memory becomes the output's while others still read the tile.
__global__ void __launch_bounds__(64) shared_memory_reused(const float* in, float* out) {
    __shared__ float memory[64];
    const int t = threadIdx.x;
    memory[t] = in[blockIdx.x * 64 + t];
    __syncthreads();
    float sum = 0.0f;
    for (int i = 0; i < 64; ++i) sum += memory[i] * ((i + t) % 7);
#ifdef FIXED
    __syncthreads();
#endif
    memory[t] = sum;    // FAULT
    __syncthreads();
    out[blockIdx.x * 64 + t] = memory[63 - t];
}
