// The only array of the block, and an index beyond it.
__global__ void __launch_bounds__(64) shared_index_too_large(const float* in, float* out, int shift) {
    __shared__ float tile[64];
    const int t = threadIdx.x;
    tile[t] = in[t];
    __syncthreads();
#ifdef FIXED
    out[t] = tile[(t + shift) % 64];
#else
    out[t] = tile[t + shift];    // FAULT
#endif
}
