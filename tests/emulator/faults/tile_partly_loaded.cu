// 64 threads load a tile of 100 elements in one step instead of two.
__global__ void __launch_bounds__(64) tile_partly_loaded(const float* in, float* out) {
    __shared__ float tile[100];
    const int t = threadIdx.x;
#ifdef FIXED
    for (int i = t; i < 100; i += 64) tile[i] = in[i];
#else
    tile[t] = in[t];
#endif
    __syncthreads();
    float sum = 0.0f;
    for (int i = t; i < 100; i += 64) sum += tile[99 - i];    // FAULT
    out[t] = sum;
}
