// Blocks add to bins with atomics and count themselves; the last one copies the bins. Atomics on different words have no order.
__global__ void __launch_bounds__(64) histogram_copied_without_fence(const int* values, int* bins, unsigned* counter, int* out) {
    __shared__ bool last;
    atomicAdd(&bins[values[blockIdx.x * 64 + threadIdx.x]], 1);
#ifdef FIXED
    __threadfence();
#endif
    __syncthreads();
    if (threadIdx.x == 0) last = atomicAdd(counter, 1u) == gridDim.x - 1;
    __syncthreads();
    if (last && threadIdx.x < 16) out[threadIdx.x] = bins[threadIdx.x];    // FAULT
}
