// A tile is turned round; others' elements are read before they are surely there.
__global__ void __launch_bounds__(64) tile_used_before_barrier(const float* in, float* out) {
    __shared__ float tile[64];
    const int t = threadIdx.x;
    tile[t] = in[blockIdx.x * 64 + t];
#ifdef FIXED
    __syncthreads();
#endif
    out[blockIdx.x * 64 + t] = tile[63 - t];    // FAULT
}
