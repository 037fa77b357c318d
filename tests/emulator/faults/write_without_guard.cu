__global__ void __launch_bounds__(64) write_without_guard(const float* in, float* out, int n) {
    const int i = blockIdx.x * 64 + threadIdx.x;
    const float x = i < n ? in[i] : 0.0f;
#ifdef FIXED
    if (i < n)
#endif
        out[i] = 2.0f * x;    // FAULT
}
