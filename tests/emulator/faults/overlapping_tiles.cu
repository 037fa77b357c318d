// Tiles of 64 that are stored 60 apart, so that the last values of one and the first of the next share places.
#ifdef FIXED
#define STEP 64
#else
#define STEP 60
#endif
__global__ void __launch_bounds__(64) overlapping_tiles(const float* in, float* out) {
    const int i = blockIdx.x * STEP + threadIdx.x;
    out[i] = 2.0f * in[blockIdx.x * 64 + threadIdx.x];    // FAULT
}
