// Thread 0 computes the mean, everybody uses it.
__global__ void __launch_bounds__(64) scalar_not_shared_yet(const float* in, float* out) {
    __shared__ float mean;
    const int t = threadIdx.x;
    if (t == 0) {
        float sum = 0.0f;
        for (int i = 0; i < 64; ++i) sum += in[i];
        mean = sum / 64.0f;
    }
#ifdef FIXED
    __syncthreads();
#endif
    out[t] = in[t] - mean;    // FAULT
}
