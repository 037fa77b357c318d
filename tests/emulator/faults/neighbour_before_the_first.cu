// The left neighbour of the first element.
__global__ void __launch_bounds__(64) neighbour_before_the_first(const float* in, float* out) {
    const int i = blockIdx.x * 64 + threadIdx.x;
#ifdef FIXED
    const float left = i ? in[i - 1] : 0.0f;
#else
    const float left = in[i - 1];    // FAULT
#endif
    out[i] = in[i] - left;
}
