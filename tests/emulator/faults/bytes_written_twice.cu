// fp8 values, a byte for each thread; the second warp forgets its place.
__global__ void __launch_bounds__(64) bytes_written_twice(const unsigned char* in, unsigned char* out) {
    __shared__ unsigned char tile[64];
    const int t = threadIdx.x;
#ifdef FIXED
    tile[t] = in[t];
#else
    tile[t & 31] = in[t];    // FAULT
    if (t >= 32) tile[t] = 0;
#endif
    __syncthreads();
    out[t] = tile[63 - t];
}
