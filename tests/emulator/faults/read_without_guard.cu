// n is no multiple of the block.
__global__ void __launch_bounds__(64) read_without_guard(const float* in, float* out, int n) {
    const int i = blockIdx.x * 64 + threadIdx.x;
#ifdef FIXED
    if (i >= n) return;
#endif
    const float x = in[i];    // FAULT
    if (i < n) out[i] = 2.0f * x;
}
