// Two buffers allow one barrier a step, but only if they are really used in turn.
__global__ void __launch_bounds__(64) double_buffer_of_one(const float* in, float* out, int tiles) {
    __shared__ float tile[2][64];
    const int t = threadIdx.x;
    float sum = 0.0f;
    for (int i = 0; i < tiles; ++i) {
#ifdef FIXED
        float* now = tile[i % 2];
#else
        float* now = tile[i % 1];
#endif
        now[t] = in[i * 64 + t];    // FAULT
        __syncthreads();
        for (int j = 0; j < 64; ++j) sum += now[j] * (j + t);
    }
    out[t] = sum;
}
