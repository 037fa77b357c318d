// The launch gives 256 bytes.
#ifdef FIXED
#define TILE 64
#else
#define TILE 96
#endif
extern __shared__ float tile[];
__global__ void __launch_bounds__(32) dynamic_shared_too_small(const float* in, float* out) {
    for (int i = threadIdx.x; i < TILE; i += 32) tile[i] = in[i];    // FAULT
    __syncthreads();
    float sum = 0.0f;
    for (int i = 0; i < TILE; ++i) sum += tile[i] * threadIdx.x;
    out[threadIdx.x] = sum;
}
