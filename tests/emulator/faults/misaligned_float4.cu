// Rows of 33 floats, read four at a time.
__global__ void __launch_bounds__(8) misaligned_float4(const float* in, float* out) {
#ifdef FIXED
    const float* row = in + blockIdx.x * 36;
#else
    const float* row = in + blockIdx.x * 33;
#endif
    const float4 x = reinterpret_cast<const float4*>(row)[threadIdx.x];    // FAULT
    out[blockIdx.x * 8 + threadIdx.x] = x.x + x.y + x.z + x.w;
}
