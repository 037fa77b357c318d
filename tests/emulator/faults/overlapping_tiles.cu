// Tiles of 64 that are 60 apart.
#ifdef FIXED
#define STEP 64
#else
#define STEP 60
#endif
__global__ void __launch_bounds__(64) overlapping_tiles(const float* in, float* out) {
    const int i = blockIdx.x * STEP + threadIdx.x;
    out[i] = 2.0f * in[i];    // FAULT
}
