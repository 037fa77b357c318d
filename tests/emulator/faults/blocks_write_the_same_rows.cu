// Every block should have rows of its own.
__global__ void __launch_bounds__(64) blocks_write_the_same_rows(const float* in, float* out) {
#ifdef FIXED
    const int row = blockIdx.x;
#else
    const int row = blockIdx.x / 2;
#endif
    out[row * 64 + threadIdx.x] = in[blockIdx.x * 64 + threadIdx.x];    // FAULT
}
