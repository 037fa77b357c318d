// A private histogram in each block's shared memory, merged at the end; four elements with one load.
#define BINS 64

extern "C" __global__ void histogram_shared(const uchar4* __restrict__ data, unsigned int* __restrict__ bins, int n4) {
    __shared__ unsigned int local_bins[BINS];
    for (int b = threadIdx.x; b < BINS; b += blockDim.x) local_bins[b] = 0;
    __syncthreads();

    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n4; i += blockDim.x * gridDim.x) {
        uchar4 v = data[i];
        atomicAdd(&local_bins[v.x >> 2], 1);
        atomicAdd(&local_bins[v.y >> 2], 1);
        atomicAdd(&local_bins[v.z >> 2], 1);
        atomicAdd(&local_bins[v.w >> 2], 1);
    }
    __syncthreads();

    for (int b = threadIdx.x; b < BINS; b += blockDim.x)
        if (local_bins[b]) atomicAdd(&bins[b], local_bins[b]);
}
