// n is no multiple of the block; all lanes take part in the shuffle.
__global__ void __launch_bounds__(64) read_without_guard(const float* in, float* out, int n) {
    const int i = blockIdx.x * 64 + threadIdx.x;
#ifdef FIXED
    const float x = i < n ? in[i] : 0.0f;
#else
    const float x = in[i];    // FAULT
#endif
    const float other = __shfl_xor_sync(~0u, x, 1);
    if (i < n) out[i] = x + other;
}
