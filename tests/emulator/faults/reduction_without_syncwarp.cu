// The last steps of a tree within one warp, as it was written before lanes could run apart.
__global__ void __launch_bounds__(32) reduction_without_syncwarp(const float* in, float* out) {
    __shared__ volatile float part[64];
    const int t = threadIdx.x;
    part[t] = in[blockIdx.x * 32 + t];
    part[t + 32] = 0.0f;
    __syncwarp();
    for (int half = 16; half; half /= 2) {
        const float other = part[t + half];    // FAULT
#ifdef FIXED
        __syncwarp();
#endif
        part[t] = part[t] + other;    // FAULT
#ifdef FIXED
        __syncwarp();
#endif
    }
    if (t == 0) out[blockIdx.x] = part[0];
}
