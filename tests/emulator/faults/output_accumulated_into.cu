// The output is not zero before the launch.
__global__ void __launch_bounds__(64) output_accumulated_into(const float* in, float* out) {
    const int i = blockIdx.x * 64 + threadIdx.x;
#ifdef FIXED
    out[i] = in[i];
#else
    out[i] += in[i];    // FAULT
#endif
}
