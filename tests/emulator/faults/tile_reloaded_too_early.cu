// The loop lacks its second barrier: a fast warp loads the next tile while a slow one still uses this one.
__global__ void __launch_bounds__(64) tile_reloaded_too_early(const float* in, float* out, int tiles) {
    __shared__ float tile[64];
    const int t = threadIdx.x;
    float sum = 0.0f;
    for (int i = 0; i < tiles; ++i) {
        tile[t] = in[i * 64 + t];    // FAULT
        __syncthreads();
        for (int j = 0; j < 64; ++j) sum += tile[j] * (j + t);
#ifdef FIXED
        __syncthreads();
#endif
    }
    out[t] = sum;
}
